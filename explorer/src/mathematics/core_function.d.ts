declare module "core:function" {
  export function makeCore(): typeof import("./inside");
}
