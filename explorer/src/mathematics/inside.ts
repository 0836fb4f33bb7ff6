// All that a worker needs: it is bundled into one function.

export * from "../core/index";
export { serve } from "./painting";
