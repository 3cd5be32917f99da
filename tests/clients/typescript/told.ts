// What the stories share, whichever client tells them: where the server is, and how a step is checked and told.

import assert from "node:assert/strict";

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

/** What the paths of the document begin with. */
export const base = setting("FOLDWORK_BASE");
/** A key that may do everything. */
export const key = setting("FOLDWORK_TOKEN");
/** What sets the names of this run's things apart from those of other runs on the same server. */
export const run = setting("FOLDWORK_RUN");

/** What the uploaded file holds. */
export const bytes = Buffer.from("Flour, water, salt, time.\n");

/** Fetches what a link leads to, without any token. */
export async function linked(url: string): Promise<Buffer> {
  const response = await fetch(new URL(url, base));
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
}

export interface Failed {
  error: string;
  code: string | number;
  request_id: string;
}

/** Checks an error's status and code, and that it has the shape that every error has. */
export function refused(status: number, error: unknown, wanted: number, code: string): void {
  const failed = error as Failed;
  assert.equal(status, wanted, JSON.stringify(error));
  assert.equal(failed.code, code);
  assert.ok(failed.error.length > 0 && failed.request_id.length > 0);
}

/** Tells a story step by step, and fails with the step that does not hold. */
export async function tell(client: string, steps: Record<string, () => Promise<void>>): Promise<void> {
  let passed = 0;
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step();
      passed += 1;
    } catch (error) {
      console.error(`${client}: ${name}: FAILED`);
      console.error(error);
      process.exit(1);
    }
  }
  console.log(`${client}: ${passed} steps passed`);
}
