// Scores of search results: those of Sphinx, with tasks before reference, and the project's own pages last.

const PLACES = { howto: 6, start: 4, concepts: 4, lectures: 3, reference: 2, gallery: -4, project: -8 };

var Scorer = {
  score: ([page, , anchor, description, score, , kind]) => {
    const [place] = page.split("/");
    if (page.endsWith("index")) return score - 8;
    if (/ (property|attribute), /.test(description)) return score - 8;
    if (page.startsWith("reference/api")) return score;
    return score + (PLACES[place] ?? 0) + (kind === "title" && !anchor ? 8 : 0);
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
