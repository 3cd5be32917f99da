// The code shared by the stories of all clients: the settings of a run, and functions that check and report steps.

import assert from "node:assert/strict";

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

/** The prefix of the document's paths. */
export const base = setting("FOLDWORK_BASE");
/** A key with all rights. */
export const key = setting("FOLDWORK_TOKEN");
/** A suffix that makes the names of this run unique on its server. */
export const run = setting("FOLDWORK_RUN");

/** The content of the uploaded file. */
export const bytes = Buffer.from("Flour, water, salt, time.\n");

/** Fetches the target of a link without a token. */
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

/** Checks the status, the code and the common fields of an error. */
export function refused(status: number, error: unknown, wanted: number, code: string): void {
  const failed = error as Failed;
  assert.equal(status, wanted, JSON.stringify(error));
  assert.equal(failed.code, code);
  assert.ok(failed.error.length > 0 && failed.request_id.length > 0);
}

/** Runs the steps of a story in order. Fails at the first step that fails. */
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
