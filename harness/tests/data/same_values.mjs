// node same_values.mjs MODEL.js FACTS EXPRESSIONS: prints the values of JavaScript expressions over a model, as JSON.
const [modelPath, facts, expressions] = process.argv.slice(2);
const model = await import(modelPath),
  names = Object.keys(model);
const values = JSON.parse(expressions).map((code) =>
  new Function(...names, "facts", `return (${code});`)(...names.map((name) => model[name]), JSON.parse(facts)),
);
console.log(JSON.stringify(values));
