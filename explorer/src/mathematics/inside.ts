// All that the page and its worker compute: it is bundled into one function.

export { attractorFrom, attractorOf, headSupport, locallyOptimal, measure } from "../core/analysis";
export { gradientOf, lossOf } from "../core/gradient";
export { dot } from "../core/linear";
export { formatNorm, parseNorm } from "../core/norms";
export { isPredicted, normFor } from "../core/optimizers";
export {
  bestTokens, direction, headScores, isPrompt, optimalTokens, product, queriesOf, sizeOf, ties,
} from "../core/problem";
export { pathOf, recordedSteps, train } from "../core/train";
export { serve } from "./painting";
