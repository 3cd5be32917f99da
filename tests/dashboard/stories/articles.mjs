// Articles: creation, publication, merges of concurrent changes, and content that must not run code.

import { equal, gone, ok, see, story, until } from "../lib/story.mjs";

story("an article is written, published, changed and taken back", async ({ page, api, signIn, go, axe, screenshot, aria }) => {
  await signIn();
  await go("/articles");
  await see(page.getByText("No article exists."));
  await page.getByRole("link", { name: "New article" }).click();
  ok(await page.getByRole("button", { name: "Save" }).isDisabled());
  await page.getByLabel("Title").fill("Pricing");
  await page.getByLabel("Tags").fill("money, guide");
  await page.getByLabel(/^Text/).fill("# Prices\n\nOne costs **ten**.\n");
  const preview = page.getByRole("region", { name: "Preview" });
  await see(preview.locator("strong").getByText("ten"));
  await page.keyboard.press("Control+s");
  await see(page.getByText("draft", { exact: true }));
  const [article] = (await api("GET", "/articles")).data;
  equal([article.title, article.slug, article.tags, article.status], ["Pricing", "pricing", ["money", "guide"], "draft"]);
  await axe();
  await screenshot("article");
  await page.getByRole("button", { name: "Publish", exact: true }).click();
  await see(page.getByText("published", { exact: true }));
  const reader = await api("POST", "/keys", { name: "reader", scopes: ["content:read"] });
  equal((await api("GET", `/articles/${article.aggregate_id}`, undefined, { key: reader.key })).title, "Pricing");
  await page.getByLabel("Title").fill("Prices");
  await page.getByRole("button", { name: "Save" }).click();
  await see(page.getByText("unpublished changes"));
  equal((await api("GET", `/articles/${article.aggregate_id}`, undefined, { key: reader.key })).title, "Pricing");
  await page.getByRole("button", { name: "Publish again" }).click();
  await gone(page.getByText("unpublished changes"));
  equal((await api("GET", `/articles/${article.aggregate_id}`, undefined, { key: reader.key })).title, "Prices");
  await page.getByRole("button", { name: "{ }" }).click();
  await see(page.getByRole("dialog", { name: "This screen as API calls" }).getByText(/If-Match: /));
  await page.keyboard.press("Escape");
  await gone(page.getByRole("dialog"));
  // Unpublishing would discard what is typed and not saved.
  await page.getByLabel("Title").fill("Prices, not saved");
  await until(() => page.getByRole("button", { name: "Unpublish" }).isDisabled());
  // What is typed stays while another screen is shown, and leaving the page from there asks.
  await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Types", exact: true }).click();
  await see(page.getByRole("heading", { name: "Types", exact: true }));
  equal(await page.evaluate(() => dispatchEvent(new Event("beforeunload", { cancelable: true }))), false);
  await page.goBack();
  await until(async () => (await page.getByLabel("Title").inputValue()) === "Prices, not saved");
  await page.getByLabel("Title").fill("Prices");
  await page.getByRole("button", { name: "Unpublish" }).click();
  await see(page.getByText("draft", { exact: true }));
  await api("GET", `/articles/${article.aggregate_id}`, undefined, { key: reader.key, expect: 404 });
  await page.getByRole("link", { name: "Articles" }).first().click();
  await see(page.getByRole("link", { name: "Prices" }));
  await axe();
  await aria("list", page.getByRole("list", { name: "Articles" }));
  await screenshot("articles");
  await page.getByRole("link", { name: "Prices" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  // A click into the padding is inside the dialog, and so is a selection that ends outside. A click outside closes it.
  const dialog = page.getByRole("dialog");
  const head = dialog.getByRole("heading");
  await dialog.click({ position: { x: 6, y: 30 } });
  await head.hover();
  await page.mouse.down();
  await page.mouse.move(4, 4);
  await page.mouse.up();
  await head.click();
  await page.mouse.click(4, 4);
  await gone(dialog);
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await see(page.getByText("No article exists."));
});

story("two people change an article, and the second merges both texts", async ({ page, api, signIn, go, axe, screenshot }) => {
  const body = "# Guide\n\nFirst paragraph.\n\nSecond paragraph.\n\nThird paragraph.\n";
  const article = await api("POST", "/articles", { title: "Guide", body, tags: ["a"] });
  await signIn();
  await go(`/articles/${article.aggregate_id}`);
  const text = page.getByLabel(/^Text/);
  await until(async () => (await text.inputValue()) === body);
  await text.fill(body.replace("First paragraph.", "First, mine.").replace("Third paragraph.", "Third, mine."));
  await api("PATCH", `/articles/${article.aggregate_id}`, { title: "The guide", body: body.replace("Second paragraph.", "Second, theirs.").replace("Third paragraph.", "Third, theirs.") });
  await see(page.getByText("Somebody has saved version 2 while you were writing."));
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Merge with version 2" });
  await see(dialog.getByText("1 place differs"));
  const merged = dialog.getByLabel("Merged text");
  equal(await merged.inputValue(), "# Guide\n\nFirst, mine.\n\nSecond, theirs.\n\nThird, mine.\n");
  await dialog.getByRole("radio", { name: "both" }).check();
  equal(await merged.inputValue(), "# Guide\n\nFirst, mine.\n\nSecond, theirs.\n\nThird, mine.\nThird, theirs.\n");
  await axe();
  await screenshot("merge");
  // What was typed is not lost by another choice.
  await merged.fill("All typed.");
  await dialog.getByRole("radio", { name: "theirs" }).check();
  equal(await merged.inputValue(), "# Guide\n\nFirst, mine.\n\nSecond, theirs.\n\nThird, theirs.\n");
  await dialog.getByRole("button", { name: "Bring it back" }).click();
  equal(await merged.inputValue(), "All typed.");
  await dialog.getByRole("radio", { name: "both" }).check();
  // Another change is saved first while the merge is open.
  await api("PATCH", `/articles/${article.aggregate_id}`, { tags: ["a", "b"] });
  await dialog.getByRole("button", { name: "Save the merge" }).click();
  const again = page.getByRole("dialog", { name: "Merge with version 3" });
  await see(again);
  await again.getByRole("button", { name: "Save the merge" }).click();
  await gone(page.getByRole("dialog"));
  const saved = await api("GET", `/articles/${article.aggregate_id}`);
  equal([saved.version, saved.title, saved.tags], [4, "The guide", ["a", "b"]]);
  for (const part of ["First, mine.", "Second, theirs.", "Third, mine.", "Third, theirs."]) ok(saved.body.includes(part), `${part} is missing`);
}, { expected: [409] });

story("hostile Markdown is text, and its links lead nowhere", async ({ page, api, signIn, go, axe, screenshot }) => {
  const hostile = [
    "<script>window.stolen = 1</script>", "<img src=x onerror=\"window.stolen = 2\">", "[click](javascript:window.stolen=3)", "[data](data:text/html,<script>window.stolen=4</script>)",
    "![pixel](https://tracker.example/pixel.png)", "<iframe src=\"/\"></iframe>", "<style>body { display: none }</style>", "[ref]: javascript:window.stolen=5\n\n[ref]", "<a href=\"javascript:window.stolen=6\">x</a>",
    "`<b>code</b>`", "| a |\n|---|\n| <svg onload=window.stolen=7> |", "[good](https://example.org/)", "\u202eright to left\u202c",
  ].join("\n\n");
  const article = await api("POST", "/articles", { title: "<img src=x onerror=alert(1)>", body: hostile });
  await signIn();
  await go(`/articles/${article.aggregate_id}`);
  const preview = page.getByRole("region", { name: "Preview" });
  await see(preview.getByRole("link", { name: "good" }));
  equal(await preview.locator("script, img, iframe, style, svg, b").count(), 0);
  equal(await preview.locator("a").evaluateAll((links) => links.map((link) => link.getAttribute("href"))), ["https://example.org/"]);
  await see(preview.getByText("<script>window.stolen = 1</script>"));
  await see(page.getByRole("heading", { name: "<img src=x onerror=alert(1)>" }));
  equal(await page.evaluate(() => "stolen" in window), false);
  await axe();
  await screenshot("hostile");
  await go("/articles");
  await see(page.getByRole("link", { name: "<img src=x onerror=alert(1)>" }));
});
