// Server-sent events from a response body.
export { createParser } from "eventsource-parser";
