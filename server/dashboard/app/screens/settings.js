// Settings: keys, devices, members, the workspace with its plan, the server, backups, the installation, and appearance.

import { html, useEffect, useState } from "../vendor/ui.js";
import { has, session } from "../api/session.js";
import { Failure, Link, Loading } from "../parts/basic.js";
import { NowNote } from "../parts/now.js";
import { useStyle } from "../parts/style.js";
import { SCOPES } from "./settings/shared.js";

/** @type {Record<string, {label: string, load: () => Promise<any>, isOffered?: () => boolean}>} */
const SECTIONS = {
  keys: { label: "Keys", load: () => import("./settings/keys.js") },
  devices: { label: "Devices", load: () => import("./settings/devices.js") },
  members: { label: "Members", load: () => import("./settings/members.js") },
  workspace: { label: "Workspace", load: () => import("./settings/workspace.js") },
  server: { label: "Server", load: () => import("./settings/server.js") },
  backups: { label: "Backups", load: () => import("./settings/backups.js"), isOffered: () => Object.keys(SCOPES).every(has) },
  installation: { label: "Installation", load: () => import("./settings/installation.js"), isOffered: () => Object.keys(SCOPES).every(has) },
  appearance: { label: "Appearance", load: () => import("./settings/appearance.js") },
};

/** @param {{path: string[]}} props */
export default function Settings({ path: [section = "keys"] }) {
  useStyle("settings");
  const [shown, setShown] = useState(/** @type {{section: string, View?: any, error?: any} | null} */ (null));
  const chosen = SECTIONS[section];
  const isAllowed = chosen?.isOffered?.() ?? true;
  useEffect(() => {
    if (!isAllowed) return;
    chosen?.load().then((module) => setShown({ section, View: module.default }), () => setShown({ section, error: new Error("This part of the dashboard could not be loaded.") }));
  }, [section, isAllowed]);
  const offered = Object.entries(SECTIONS).filter(([, { isOffered }]) => session.value && (isOffered?.() ?? true));
  return html`<div class="page settings"><h1>Settings</h1>
    <nav class="tabs" aria-label="Settings">${offered.map(([name, { label }]) => html`<${Link} key=${name} to=${`/settings/${name}`} aria-current=${section === name ? "page" : undefined}>${label}<//>`)}</nav>
    <${NowNote}>Settings are shown as of now: they are no part of the log.<//>
    ${!chosen ? html`<p class="empty">There is no such section.</p>` : !isAllowed ? html`<p class="empty">This section needs a key with every scope, and a role that may change the workspace.</p>` : shown?.section !== section ? html`<${Loading} />` : shown.error ? html`<${Failure} error=${shown.error} />` : html`<${shown.View} />`}
  </div>`;
}
