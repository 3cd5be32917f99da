// The exports of server/dashboard/app/vendor/diff.js. The bundle has no types.
export const diffLines: any;
export const diffWordsWithSpace: any;
