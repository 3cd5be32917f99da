// Members: invitations with withdrawal, acceptance and rejection, changes of roles, and removal with a new assignee for
// the member's tasks.

import { equal, gone, see, story, until } from "../lib/story.mjs";
import { issuer, token } from "../lib/issuer.mjs";

story("a person is invited, accepts, changes role, and is removed", async ({ page, api, server, signIn, go, profile, axe, aria, screenshot }) => {
  await signIn();
  await go("/settings/members");
  const invite = async (/** @type {string} */ email, /** @type {string} */ role, /** @type {string} */ own) => {
    await page.getByRole("button", { name: "Invite" }).click();
    const dialog = page.getByRole("dialog", { name: "Invite a person" });
    await dialog.getByLabel("E-mail address").fill(email);
    await dialog.getByLabel(role).check();
    await dialog.getByLabel("Your own key").fill(own);
    if (role === "viewer") { await axe(); await screenshot("invite"); await aria("invite", dialog); }
    await dialog.getByRole("button", { name: "Invite" }).click();
    await see(page.getByRole("region", { name: "Members" }).getByText(email));
  };
  await invite("ada@example.com", "editor", server.key);
  await invite("bob@example.com", "viewer", "");
  await axe();
  await screenshot("members");

  const other = await profile();
  await signIn({ key: token("ada@example.com", "Ada"), page: other });
  await go("/settings/members", other);
  await other.getByRole("button", { name: "Accept the invitation to default" }).click();
  await see(other.getByRole("heading", { name: "default" }));
  const members = async () => (await api("GET", "/members")).data;
  const ada = (await members()).find((/** @type {any} */ member) => member.email === "ada@example.com");
  equal([ada.status, ada.role], ["active", "editor"]);

  await page.evaluate(() => window.dispatchEvent(new Event("focus")));
  await page.getByRole("button", { name: "Change the role of Ada" }).click();
  const role = page.getByRole("dialog", { name: "Role of Ada" });
  equal(await role.getByLabel("editor").isChecked(), true);
  await role.getByLabel("viewer").check();
  await role.getByRole("button", { name: "Change role" }).click();
  await gone(role);
  await until(async () => (await members()).some((/** @type {any} */ member) => member.id === ada.id && member.role === "viewer"));

  await page.getByRole("button", { name: "Withdraw the invitation of bob@example.com" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Withdraw" }).click();
  await gone(page.getByRole("region", { name: "Members" }).getByText("bob@example.com"));

  const agent = await api("POST", "/agents", { name: "Scribe" });
  const task = await api("POST", "/mailbox", { title: "Read this", assignee_type: "user", assignee_id: ada.id });
  await page.getByRole("button", { name: "Remove Ada" }).click();
  const question = page.getByRole("dialog", { name: "Remove Ada?" });
  await see(question.getByText("One open task is assigned to this person."));
  await axe();
  await screenshot("remove-member");
  await question.getByRole("combobox").selectOption("Scribe (agent)");
  await question.getByRole("button", { name: "Remove" }).click();
  await gone(page.getByRole("region", { name: "Members" }).getByText("Ada"));
  equal((await members()).length, 1);
  equal((await api("GET", `/mailbox/${task.id}`)).assignee_id, agent.id);
  await see(other.getByText(/offline/));
  // The screen of the removed member may ask for anything before it learns of the removal.
}, { ...issuer, expected: [{ status: 403, path: /\/api\/v1\// }] });

story("an invitation is declined, and one that a session made ends with the session", async ({ page, api, signIn, go }) => {
  await api("POST", "/members", { email: "cyd@example.com", role: "owner" });
  await signIn({ key: token("cyd@example.com", "Cyd") });
  await go("/settings/members");
  await page.getByRole("button", { name: "Decline the invitation to default" }).click();
  await see(page.getByText("No workspace invites you."));
  equal((await api("GET", "/members")).data.length, 1);
  await page.getByRole("button", { name: "Sign out" }).click();
  await see(page.getByLabel("API key"));

  await signIn();
  await go("/settings/members");
  await page.getByRole("button", { name: "Invite" }).click();
  const dialog = page.getByRole("dialog", { name: "Invite a person" });
  await dialog.getByLabel("E-mail address").fill("dan@example.com");
  await dialog.getByRole("button", { name: "Invite" }).click();
  await see(page.getByRole("region", { name: "Members" }).getByText("dan@example.com"));
  await page.getByRole("button", { name: "Sign out" }).click();
  await until(async () => (await api("GET", "/members")).data.length === 1, "the invitation outlives the session");
}, issuer);

story("an operator sets a plan, renames a workspace, and takes a deletion back", async ({ page, api, signIn, go, axe, aria, screenshot }) => {
  await fetchOwn(api, token("eve@example.com", "Eve"));
  await signIn();
  await go("/settings/installation");
  await see(page.getByRole("region", { name: "Users" }).getByText("Eve"));
  await axe();
  await screenshot("installation");
  await page.getByRole("button", { name: "Set the plan of Eve" }).click();
  const plan = page.getByRole("dialog", { name: "Plan of Eve" });
  await plan.getByLabel("Status").selectOption("trialing");
  await plan.getByLabel("Projects").fill("3");
  await axe();
  await aria("plan", plan);
  await plan.getByRole("button", { name: "Set plan" }).click();
  await gone(plan);
  const eve = (await api("GET", "/users")).data.find((/** @type {any} */ user) => user.name === "Eve");
  equal([eve.plan.status, eve.plan.limits.projects], ["trialing", 3]);
  const [workspace] = eve.workspaces;
  const name = (await api("GET", "/workspaces")).data.find((/** @type {any} */ row) => row.id === workspace.id).name;
  await page.getByRole("button", { name: `Rename ${name}` }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Sales");
  await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
  await page.getByRole("button", { name: "Delete Sales" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Keep Sales" }).click();
  await see(page.getByRole("button", { name: "Delete Sales" }));
  equal((await api("GET", "/workspaces")).data.find((/** @type {any} */ row) => row.id === workspace.id).delete_at, null);
}, issuer);

/** Sends a user's first request, which creates the user and a workspace. @param {any} api @param {string} key */
const fetchOwn = (api, key) => api("GET", "/profile", undefined, { key });
