// What the search puts first: pages that explain, before lists that name everything. Sphinx' own figures else.
var Scorer = {
  score: ([page, , , , score]) => {
    const lists = /^(rules|repository|decisions)\/|^(backends|faults|rules|parallelcluster-updates)$|-reference$/
    return lists.test(page) && score < 100 ? score - 12 : score // an entry of the index has up to 100
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
}
