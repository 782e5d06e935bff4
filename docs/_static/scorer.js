// Scores of search results: those of Sphinx, with tasks before reference, and reference before the project's own pages.

const PLACES = { howto: 5, start: 3, concepts: 4, lectures: 3, reference: 2, gallery: 0, project: -3 };

var Scorer = {
  score: ([page, , , , score]) => {
    const [place] = page.split("/");
    if (page.endsWith("index")) return score - 4;
    return score + (page.startsWith("reference/api") ? 1 : (PLACES[place] ?? 0));
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
