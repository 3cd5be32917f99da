// The exports of server/dashboard/app/vendor/stream.js. The bundle has no types.
export function createParser(options: { onEvent: (event: { data: string; id?: string; event?: string }) => void }): { feed: (text: string) => void };
