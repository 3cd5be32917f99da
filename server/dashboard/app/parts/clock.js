// Times in the zone of this browser.

const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" });

/** A time in the zone of this browser, as ISO 8601 writes it without a zone. @param {Date} at */
const local = (at) => new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);

/** The date of today in the zone of this browser. */
export const today = () => local(new Date()).slice(0, 10);

/** The number of characters of `10:00:00.000` that are shown. */
export const MINUTES = 5;
export const SECONDS = 8;
export const MILLISECONDS = 12;

/** A time in the zone of this browser, with its date unless the date is today. @param {string | number} time */
export function clock(time, length = MINUTES) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return String(time);
  const [day, hour] = local(at).split("T");
  return `${day === today() ? "" : `${day} `}${hour.slice(0, length)}`;
}

/** A time with its date and the name of its zone, for a tooltip. @param {string | number} time */
export function zoned(time) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return String(time);
  return `${local(at).replace("T", " ")} ${zone.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value} (${at.toISOString()})`;
}
