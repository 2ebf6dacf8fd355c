import assert from "node:assert/strict";
import test from "node:test";
import { count, digits, near, parse, percent, plural, quantity, show, times } from "./kit.js";
import { drawn, judge } from "./quiz.js";
import { excerpt, find } from "./search.js";

test("quantities read as the builder writes them", () => {
  assert.equal(quantity(4.27e12, "TB/s"), "4.27 TB/s");
  assert.equal(quantity(4.8e12, "TB/s"), "4.8 TB/s");
  assert.equal(quantity(1.09488e-3, "µs"), "1,095 µs");
  assert.equal(quantity(131072, "KiB"), "128 KiB");
  assert.equal(quantity(9.996, "s"), "10.0 s");
  assert.throws(() => quantity(1, "TBs"), /unit TBs/);
});

test("numbers, ratios and plurals", () => {
  assert.deepEqual(
    [count(67108864), digits(52.0996), digits(0.9999, 2), percent(0.222222), times(8.114), times(2), times(41.3)],
    ["67,108,864", "52.1", "1.0", "22.2 %", "8.1×", "2×", "41×"],
  );
  assert.deepEqual(
    [plural(1, "sector"), plural(1200, "sector"), show(1024), show(3.14159), show("bf16")],
    ["1 sector", "1,200 sectors", "1,024", "3.142", "bf16"],
  );
});

test("what people type is read as they mean it", () => {
  for (const [text, value] of [
    ["1,024", 1024],
    ["1 024", 1024],
    ["12,345.5", 12345.5],
    ["2,5", 2.5],
    [" 2.5 ", 2.5],
    ["−3", -3],
    ["1e3", 1000],
    ["25 %", 25],
    ["8.1×", 8.1],
    ["126 µs", 126],
    [".5", 0.5],
  ])
    assert.equal(parse(text), value, text);
  for (const text of ["", "four", "1.2.3", "--2", "µs"]) assert.ok(Number.isNaN(parse(text)), text);
});

test("near is exact at 0 but for rounding, and relative else", () => {
  assert.ok(near(0.1 + 0.2, 0.3) && !near(3, 3.0001) && near(102, 100, 0.02) && !near(103, 100, 0.02));
});

const question = {
  draw: { a: [1, 2, 3] },
  tolerance: 0,
  make: ({ a }) => ({
    answer: a * 2,
    skip: () => a === 1,
    ask: () => `${a}?`,
    right: () => "yes",
    wrong: [
      [() => a, () => "half"],
      [(v) => v > 9, () => "big"],
    ],
    otherwise: () => "no",
  }),
};

test("a question draws until its unless no longer holds", () => {
  for (let i = 0; i < 50; i++) assert.notEqual(drawn(question).values.a, 1);
  assert.throws(() => drawn({ ...question, draw: { a: [1] } }), /unless/);
});

test("an answer is judged, and the first wrong answer that fits speaks", () => {
  const made = question.make({ a: 3 });
  assert.deepEqual(
    [judge(made, 6, 0), judge(made, 3, 0), judge(made, 10, 0), judge(made, 7, 0)].map(({ ok, words }) => [ok, words]),
    [
      [true, "yes"],
      [false, "half"],
      [false, "big"],
      [false, "no"],
    ],
  );
});

test("search wants every word, and titles first", () => {
  const index = [
    { page: "4", title: "The equation", url: "a", text: "efficiency of a sector" },
    { page: "4", title: "Sectors", url: "b", text: "words" },
    { page: "5", title: "x", url: "c", text: "nothing" },
  ];
  assert.deepEqual(
    find(index, "sector").map((e) => e.url),
    ["b", "a"],
  );
  assert.deepEqual(
    find(index, "SECTOR effic").map((e) => e.url),
    ["a"],
  );
  assert.deepEqual(find(index, "  "), []);
  assert.match(excerpt("a <b> sector", "sector"), /a &lt;b&gt; <mark>sector<\/mark>/);
});
