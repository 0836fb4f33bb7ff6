// Reads states, one text of JSON a line, and prints why the page refuses each; "" where it does not.

import { createInterface } from "node:readline";
import { checkedState } from "../build/check.mjs";

for await (const line of createInterface({ input: process.stdin })) {
  try {
    checkedState(JSON.parse(JSON.parse(line)));
    console.log('""');
  } catch (error) {
    console.log(JSON.stringify(error.message));
  }
}
