// Reads calls ({module, name, arguments}) from standard input and writes what the functions return, as JSON.
import { readFileSync } from "node:fs";

const found = [];
for (const { module, name, arguments: given } of JSON.parse(readFileSync(0, "utf8"))) {
  found.push((await import(module))[name](...given));
}
process.stdout.write(JSON.stringify(found));
