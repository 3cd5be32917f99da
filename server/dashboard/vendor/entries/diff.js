// Differences of two texts, by lines and by words.
export { diffLines, diffWordsWithSpace } from "diff";
