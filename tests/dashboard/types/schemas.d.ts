// The schemas of the API by name, for the JSDoc types of the dashboard: `Schemas["Key"]`.
type Schemas = import("./api").components["schemas"];
interface JSON {
  rawJSON(text: string): unknown;
  parse(text: string, reviver: (this: any, key: string, value: any, context: { source: string }) => any): any;
}
