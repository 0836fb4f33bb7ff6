// All that the page and its worker compute: it is bundled into one function.

export { attractorOf, headSupport, locallyOptimal, measure } from "../core/analysis";
export { Gradient } from "../core/gradient";
export { formatNorm, normOf, parseNorm } from "../core/norms";
export { isPredicted, normFor } from "../core/optimizers";
export { bestTokens, constraints, direction, effective, headScores, optimalTokens, shapeOf, sizeOf, ties } from "../core/problem";
export { recordedSteps, train } from "../core/train";
export { serve } from "./painting";
