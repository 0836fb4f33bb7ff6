// The mathematics as the page uses it, and its text for workers.

import { makeCore } from "core:function";

export const {
  attractorFrom, attractorOf, bestTokens, direction, dot, formatNorm, gradientOf, headScores, headSupport, isPredicted,
  isPrompt, locallyOptimal, lossOf, measure, normFor, optimalTokens, parseNorm, pathOf, product, queriesOf,
  recordedSteps, serve, sizeOf, ties, train,
} = makeCore();
export const coreText = makeCore.toString();
