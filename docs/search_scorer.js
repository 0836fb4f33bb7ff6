// How Sphinx's search ranks pages: what is called by the words looked for comes first, records of
// the past come last. A result is [page, title, anchor, description, score, file, kind].
"use strict";

const words = (text) => text.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean).join(" ");
const query = words(new URLSearchParams(window.location.search).get("q") || "");
const late = /changelog|contributing|published_figures|architecture|^_modules/;

var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    const called = words(title.split(" > ").pop().split(".").pop());
    if (called === query) score += 40;
    else if (` ${called} `.includes(` ${query} `)) score += 12;
    return late.test(page) ? score / 4 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
