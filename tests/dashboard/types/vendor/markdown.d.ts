// The exports of server/dashboard/app/vendor/markdown.js. The bundle has no types.
export const Lexer: any;
