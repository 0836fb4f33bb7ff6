// The mathematics as the page uses it, and its text for workers.

import { makeCore } from "core:function";

export const core = makeCore();
export const coreText = makeCore.toString();
