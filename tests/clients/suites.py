"""Suites for the OpenAPI document: linting the document, and generating, checking and using clients."""

import json
import re
import secrets
import shutil
import tempfile
from pathlib import Path

from installed import CACHE, HERE, Failed, node, npm, python, run

README = HERE.parents[1] / "openapi" / "README.md"
METHODS = ("get", "put", "post", "delete", "patch")


class Suite:
    """One suite and its result."""

    def __init__(self, name, document):
        self.name, self.document, self.failure = name, document, None

    def run(self, server):
        folder = Path(tempfile.mkdtemp(prefix=f"foldwork-{self.name}-"))
        try:
            SUITES[self.name](folder, self.document, environment(server))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def environment(server):
    """Returns the environment of the stories: the base URL of the server, a key, and a unique name for the run."""
    return {
        "FOLDWORK_BASE": f"http://{server.address}/api/v1",
        "FOLDWORK_TOKEN": server.key,
        "FOLDWORK_RUN": secrets.token_hex(4),
    }


def operations(document):
    """Returns the ids of the document's operations."""
    paths = json.loads(document.read_text(encoding="utf-8"))["paths"]
    return {operation["operationId"] for item in paths.values() for method, operation in item.items() if method in METHODS}


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def none_dropped(generator, document, found, written=lambda name: name):
    """Fails if the generator omitted an operation. Generators omit unsupported operations, sometimes silently."""
    expected = {written(name) for name in operations(document)}
    if expected - found:
        raise Failed(f"{generator} omits {', '.join(sorted(expected - found))}")
    print(f"{generator}: {len(expected)} operations of {len(expected)}", flush=True)


def lint(folder, document, _):
    packages = npm(HERE / "typescript")
    tools = node(packages)
    for rules in ("redocly.yaml", "spectral.yaml"):
        shutil.copy(HERE / "lint" / rules, folder)
    print(run(["redocly", "lint", "--config", "redocly.yaml", document], folder, **tools,
              REDOCLY_TELEMETRY="off", REDOCLY_SUPPRESS_UPDATE_NOTICE="true").strip().splitlines()[-1])
    # Treats warnings as errors.
    print(run(["spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "warn", document], folder,
              **tools).strip())


def typescript(folder, document, env):
    packages, jar = npm(HERE / "typescript"), generator_jar()
    tools = node(packages)
    for file in (HERE / "typescript").iterdir():
        shutil.copy(file, folder)
    (folder / "node_modules").symlink_to(packages / "node_modules")
    generated = folder / "generated"
    generated.mkdir()
    run(["openapi-typescript", document, "-o", generated / "openapi_typescript.ts"], folder, **tools)
    run(["openapi-ts", "-i", document, "-o", generated / "hey_api", "-c", "@hey-api/client-fetch"], folder, **tools)
    run(["java", "-jar", jar, "generate", "-i", document, "-g", "typescript-fetch", "-o", generated / "typescript_fetch",
         "-p", "importFileExtension=.js"], folder)
    text = (generated / "openapi_typescript.ts").read_text(encoding="utf-8")
    listed = text.split("export interface operations {", 1)[1]
    none_dropped("openapi-typescript", document, set(re.findall(r"^    (\w+): \{", listed, re.M)))
    text = (generated / "hey_api" / "sdk.gen.ts").read_text(encoding="utf-8")
    none_dropped("hey-api", document, set(re.findall(r"^export const (\w+) = <", text, re.M)), camel)
    text = "".join(path.read_text(encoding="utf-8") for path in (generated / "typescript_fetch" / "apis").iterdir())
    none_dropped("typescript-fetch", document, set(re.findall(r"async (\w+)Raw\(", text)), camel)
    # The code in the README imports the clients from the folder of the README's commands.
    for number, client in enumerate(("hey_api", "typescript_fetch"), start=1):
        code = lines_of_use("ts", env, number).replace("./foldwork/", f"./generated/{client}/")
        (folder / f"usage_{client}.mts").write_text(code, encoding="utf-8")
    run(["tsc"], folder, **tools)
    for story in ("openapi_fetch", "hey_api", "typescript_fetch"):
        print(run(["node", f"built/{story}.js"], folder, **tools, **env).strip(), flush=True)
    # The code in the README imports the types under the file name from the README's command.
    shutil.copy(generated / "openapi_typescript.ts", folder / "foldwork.ts")
    (folder / "usage.mts").write_text(lines_of_use("ts", env), encoding="utf-8")
    print(used("openapi-fetch", run(["node", "usage.mts"], folder, **tools, **env)), flush=True)
    for client in ("hey_api", "typescript_fetch"):
        print(used(client, run(["node", f"built/usage_{client}.mjs"], folder, **tools, **env)), flush=True)


def generator_jar():
    binaries = python(HERE / "python" / "requirements.txt")
    return next(binaries.parent.glob("lib/python*/site-packages/openapi_generator_cli/openapi-generator.jar"))


def python_client(folder, document, env):
    binaries = python(HERE / "python" / "requirements.txt")
    # Sets the path, because the generator formats its output with tools that it finds there.
    output = run([binaries / "openapi-python-client", "generate", "--path", document, "--output-path", "client",
                  "--meta", "none", "--fail-on-warning"], folder, PATH=f"{binaries}:/usr/bin:/bin")
    found = {path.stem for path in (folder / "client" / "api").glob("*/*.py")}
    none_dropped("openapi-python-client", document, found)
    if "WARNING" in output:
        raise Failed(output)
    for name in ("story.py", "mypy.ini"):
        shutil.copy(HERE / "python" / name, folder)
    run([binaries / "mypy", "story.py", "client"], folder)
    print(run([binaries / "python", "story.py"], folder, **env).strip(), flush=True)
    (folder / "usage.py").write_text(lines_of_use("python", env).replace("foldwork_client", "client"), encoding="utf-8")
    print(used("Python", run([binaries / "python", "usage.py"], folder, **env)), flush=True)


def lines_of_use(language, env, number=0):
    """Returns the README's code in a language, with the address of the server of this run. `number` is the place among
    the README's blocks in that language.
    """
    code = README.read_text(encoding="utf-8").split(f"```{language}\n")[number + 1].split("```")[0]
    return code.replace("http://127.0.0.1:8080/api/v1", env["FOLDWORK_BASE"])


def used(language, output):
    """Checks the output of the README's code: the id of the new article, and its status."""
    if not re.fullmatch(r"\S+ draft", output.strip().splitlines()[-1]):
        raise Failed(f"the lines of {language} in the README printed {output}")
    return f"README: the lines of {language} passed"


def rust(folder, document, env):
    target = CACHE / "rust"
    run(["cargo", "build", "--locked", "--quiet", "--manifest-path", HERE / "rust" / "Cargo.toml"], folder,
        CARGO_TARGET_DIR=str(target), FOLDWORK_DOCUMENT=str(document), FOLDWORK_README=str(README))
    text = newest(target.glob("debug/build/foldwork-client-story-*/out/client.rs")).read_text(encoding="utf-8")
    none_dropped("progenitor", document, set(re.findall(r"pub fn (\w+)\(&self\) -> builder::", text)))
    print(run([target / "debug" / "foldwork-client-story"], folder, **env).strip(), flush=True)


def newest(paths):
    return max(paths, key=lambda path: path.stat().st_mtime)


SUITES = {"lint": lint, "typescript": typescript, "python": python_client, "rust": rust}
