// The application: signing in, the frame around every screen, and the screen of each address.

import { html, render, useEffect, useState } from "./vendor/ui.js";
import { askOtherTabs, exchange, has, hasProvider, isLeaving, session, signOut } from "./api/session.js";
import { get } from "./api/client.js";
import { connection } from "./api/feed.js";
import { decoded, go, isCompared, moment, route, to } from "./state/route.js";
import { register } from "./state/keys.js";
import { complain, finishAll } from "./state/toasts.js";
import { followCounts, waiting } from "./state/waiting.js";
import { Failure, Link, Loading } from "./parts/basic.js";
import { Guard } from "./parts/guard.js";
import { Moment, MomentBanner } from "./parts/moment.js";
import { installation, useTitle } from "./parts/title.js";
import { Toasts } from "./parts/toasts.js";
import { SignIn } from "./screens/sign-in.js";

/** The screens by the first segment of their address. Each screen is loaded when it is first shown. @type {Record<string, {label: string, key?: string, hidden?: boolean, load: () => Promise<any>}>} */
const SCREENS = {
  "": { label: "Overview", key: "g o", load: () => import("./screens/overview.js") },
  inbox: { label: "Inbox", key: "g i", load: () => import("./screens/inbox.js") },
  events: { label: "Events", key: "g e", load: () => import("./screens/events.js") },
  types: { label: "Types", key: "g t", load: () => import("./screens/types.js") },
  articles: { label: "Articles", key: "g r", load: () => import("./screens/articles.js") },
  graph: { label: "Graph", key: "g h", load: () => import("./screens/graph.js") },
  pipelines: { label: "Pipelines", key: "g p", load: () => import("./screens/pipelines.js") },
  agents: { label: "Agents", key: "g a", load: () => import("./screens/agents.js") },
  projects: { label: "Projects", key: "g j", load: () => import("./screens/projects.js") },
  files: { label: "Files", key: "g f", load: () => import("./screens/files.js") },
  plugins: { label: "Plugins", key: "g l", load: () => import("./screens/plugins.js") },
  parked: { label: "Parked steps", key: "g k", load: () => import("./screens/parked.js") },
  settings: { label: "Settings", key: "g s", load: () => import("./screens/settings.js") },
  search: { label: "Search", hidden: true, load: () => import("./screens/search.js") },
  a: { label: "Aggregate", hidden: true, load: () => import("./screens/aggregate.js") },
};

/** Whether the caller may read the data of a screen. A key for published content can read only articles. @param {string} name */
const isOffered = (name) => has("api:read") || (name === "articles" && has("content:read"));

/** The screens of the navigation. */
const offered = () => Object.entries(SCREENS).filter(([name, screen]) => !screen.hidden && isOffered(name));

/** @param {{name: string}} props */
function Screen({ name }) {
  const screen = SCREENS[name];
  const [loaded, setLoaded] = useState(/** @type {{name: string, View: any} | null} */ (null));
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  useEffect(() => {
    setFailure(null);
    screen?.load().then(
      (module) => setLoaded({ name, View: module.default }),
      () => setFailure(new Error("This part of the dashboard could not be loaded. The server may have been updated.")),
    );
  }, [name]);
  useTitle(screen?.label ?? "");
  if (!screen) return html`<div class="page"><h1>Nothing here</h1><p>No screen has this address. <${Link} to="/">Overview<//></p></div>`;
  if (!isOffered(name)) return html`<div class="page"><h1>${screen.label}</h1><p>This screen needs the scope <code>api:read</code>, which this key lacks. It may read <${Link} to="/articles">published articles<//>.</p></div>`;
  if (failure) return html`<div class="page"><${Failure} error=${failure} retry=${() => location.reload()} /></div>`;
  if (loaded?.name !== name) return html`<div class="page"><${Loading} /></div>`;
  return html`<${loaded.View} path=${route.value.path.slice(1)} query=${route.value.query} />`;
}

function Navigation() {
  const here = route.value.path[0] ?? "";
  const shown = offered();
  const [workspace, setWorkspace] = useState("");
  const [isEnding, setEnding] = useState(false);
  const end = async () => { setEnding(true); await leave(); setEnding(false); };
  const key = session.value?.key;
  const [count, unit] = [waiting.value.toLocaleString("en"), waiting.value === 1 ? "task waits" : "tasks wait"];
  useEffect(() => { if (has("api:read")) get("/workspace").then((found) => setWorkspace(found.name), () => {}); }, [key]);
  // In a narrow window, the list of the screens scrolls sideways.
  useEffect(() => { document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); }, [here]);
  return html`<nav aria-label="Screens">
    <${Link} to="/" class="brand"><bdi>${installation.name || "Foldwork"}</bdi><//>
    ${workspace && html`<p class="dim workspace" title=${`The workspace ${workspace}`}><bdi>${workspace}</bdi></p>`}
    <ul>${shown.map(([name, screen]) => html`<li key=${name}>
      <${Link} to=${`/${name}`} aria-current=${here === name ? "page" : undefined} title=${`${screen.label} (${screen.key})`}>${screen.label}${name === "inbox" && waiting.value > 0 && html` <span class="badge waits" title=${`${count} ${unit} for people`}>${count}<span class="hidden"> waiting</span></span>`}<//>
    </li>`)}</ul>
    <footer>
      <span class=${`connection ${connection.value}`} role="status">${connection.value}</span>
      <button class="quiet" onClick=${isEnding ? null : end}>${isEnding ? "Signing out…" : "Sign out"}</button>
    </footer>
  </nav>`;
}

/** Signs out after the server has responded to every decision. */
async function leave() {
  await finishAll();
  const isSaved = window.dispatchEvent(new Event("beforeunload", { cancelable: true }));
  if (isSaved || confirm("Refused decisions and text that is not saved will be lost. Sign out?")) await signOut();
}

/** The time at which the palette is loaded, in milliseconds after the first paint. */
const LATER_MS = 1_000;

/** The rare dialogs of the frame. Each dialog is loaded when it is first opened. */
const DIALOGS = { help: () => import("./parts/help.js"), palette: () => import("./parts/palette.js"), api: () => import("./parts/teach.js") };

function Frame() {
  const [dialog, setDialog] = useState(/** @type {any} */ (null));
  /** @param {keyof typeof DIALOGS} name */
  const open = (name) => DIALOGS[name]().then((module) => setDialog({ name, View: module.default }), complain);
  useEffect(() => {
    return register([
      ...offered().map(([name, screen]) => ({ key: screen.key ?? "", label: screen.label, group: "Go to", run: () => go(to(`/${name}`)) })),
      { key: "?", label: "Keyboard shortcuts", group: "Everywhere", run: () => open("help") },
      { key: "ctrl+k", label: "Commands and search", group: "Everywhere", run: () => open("palette") },
      { key: "{", label: "This screen as API calls", group: "Everywhere", run: () => open("api") },
    ]);
  }, [has("api:read")]);
  // The palette gets the keys that are typed right after Ctrl+K, so its module is loaded in advance.
  useEffect(() => { const timer = setTimeout(() => DIALOGS.palette().catch(() => {}), LATER_MS); return () => clearTimeout(timer); }, []);
  // This also keeps the stream open while the application is visible, so that every screen is live.
  useEffect(followCounts, [session.value?.key]);
  const name = route.value.path[0] ?? "";
  return html`<div class=${`frame ${moment.value || isCompared.value ? "past" : ""} ${installation.color ? "colored" : ""}`} style=${installation.color ? { "--installation": installation.color } : {}}>
    <a class="skip" href="#main">Skip to the content</a>
    <${Guard} part="The navigation"><${Navigation} /><//>
    <div class="content">
      <header class="top">
        <button class="quiet" onClick=${() => open("palette")} title="Commands and search (Ctrl K)">Search <kbd>Ctrl K</kbd></button>
        <${Guard} part="The choice of a moment"><${Moment} /><//>
        <button class="quiet" onClick=${() => open("api")} title="This screen as API calls ({)">{ }</button>
        <button class="quiet" onClick=${() => open("help")} title="Keyboard shortcuts (?)" aria-label="Keyboard shortcuts">?</button>
      </header>
      <${Guard} part="The moment"><${MomentBanner} /><//>
      <main id="main" tabindex="-1"><${Guard} part="This screen" key=${name}><${Screen} name=${name} /><//></main>
    </div>
    ${dialog && html`<${Guard} part="The dialog" key=${dialog.name}><${dialog.View} close=${() => setDialog(null)} /><//>`}
    <${Guard} part="The messages"><${Toasts} /><//>
  </div>`;
}

function App() {
  if (isLeaving.value) return html`<main class="sign-in"><${Loading} /></main>`;
  if (!session.value) return html`<${Guard} part="Signing in"><${SignIn} /><//><${Guard} part="The messages"><${Toasts} /><//>`;
  return html`<${Guard} part="The dashboard"><${Frame} /><//>`;
}

/** Takes over the code of a one-time link, which must not stay in the address. */
async function begin() {
  const { path, hash, query } = route.peek();
  if (path[0] === "sign-in") {
    const code = decoded(hash);
    history.replaceState(null, "", "/");
    route.value = { path: [], query: new URLSearchParams(), hash: "" };
    if (code) await exchange(code).catch((error) => complain(error, "The link cannot be used"));
    else if (query.has("state")) await import("./api/oidc.js").then(({ arrive }) => arrive(query)).then((back) => go(back, { replace: true })).catch((error) => complain(error, "Signing in failed"));
  } else {
    await askOtherTabs();
  }
  if (hasProvider() && session.peek()?.refresh) import("./api/oidc.js").then(({ keepFresh }) => keepFresh());
  const root = /** @type {HTMLElement} */ (document.getElementById("app"));
  root.replaceChildren();
  render(html`<${App} />`, root);
}

begin();
