// Reads calls ({module, name, arguments}) from standard input and writes what the functions return, as JSON. The value of
// a constant is that constant.
import { readFileSync } from "node:fs";

const found = [];
for (const { module, name, arguments: given } of JSON.parse(readFileSync(0, "utf8"))) {
  const exported = (await import(module))[name];
  found.push(typeof exported === "function" ? exported(...given) : exported);
}
process.stdout.write(JSON.stringify(found));
