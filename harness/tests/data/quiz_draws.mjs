// node quiz_draws.mjs QUESTIONS.mjs QUIZ.js FACTS: draws each number question often; prints what is wrong with it, as JSON.
const [questionsPath, quizPath, facts] = process.argv.slice(2);
globalThis.document = { getElementById: () => ({ textContent: facts }) };
const { QUIZ } = await import(questionsPath);
const { drawn, judge } = await import(quizPath);

const DRAWS = 300,
  problems = [];
let seed = 12345;
const random = () => {
  seed = (1103515245 * seed + 12345) % 2 ** 31;
  return seed / 2 ** 31;
};
const broken = (text) => typeof text !== "string" || /undefined|NaN|Infinity|\[object|\$\{/.test(text);
const say = (i, what) => {
  if (!problems.some(([k, w]) => k === i + 1 && w === what)) problems.push([i + 1, what]);
};

QUIZ.forEach((question, i) => {
  if (!question.make) {
    question.whys.forEach((why) => {
      if (broken(why)) say(i, `why: ${why}`);
    });
    return;
  }
  const spoke = new Set(),
    numeric = new Set(),
    asks = new Set();
  for (let n = 0; n < DRAWS; n++) {
    const made = drawn(question, random),
      { answer } = made;
    asks.add(made.ask());
    if (typeof answer !== "number" || !Number.isFinite(answer)) {
      say(i, `the answer is ${answer}`);
      break;
    }
    if (!question.tolerance && !Number.isInteger(answer))
      say(i, `the answer ${answer} is no whole number, but must be hit exactly`);
    if (broken(made.ask())) say(i, `ask: ${made.ask()}`);
    const right = judge(made, answer, question.tolerance);
    if (!right.ok || broken(right.words)) say(i, `right: ${right.words}`);
    if (question.tolerance && !judge(made, Number(answer.toPrecision(3)), question.tolerance).ok)
      say(i, `the answer with three digits, ${answer.toPrecision(3)}, is refused`);
    made.wrong.forEach(([when, why], k) => {
      for (const v of [answer * 1.37 + 1, answer / 3, answer + 1, 0.5 * answer, 2 * answer]) {
        const hit = when(v);
        if (typeof hit === "number") numeric.add(k);
        const tried = typeof hit === "number" ? hit : v;
        if (hit === false || !Number.isFinite(tried)) {
          if (typeof hit !== "boolean" && !Number.isFinite(tried)) say(i, `wrong ${k + 1} gives ${hit}`);
          continue;
        }
        const verdict = judge(made, tried, question.tolerance);
        if (!verdict.ok && verdict.words === why(tried)) spoke.add(k);
        if (broken(why(tried))) say(i, `wrong ${k + 1}: ${why(tried)}`);
      }
    });
    if (broken(made.otherwise(answer * 7 + 3))) say(i, `otherwise: ${made.otherwise(answer * 7 + 3)}`);
  }
  question.make(drawn(question, random).values).wrong.forEach((_, k) => {
    if (!spoke.has(k) && numeric.has(k)) say(i, `wrong ${k + 1} is never what a learner reads`);
  });
  if (asks.size < 4) say(i, `only ${asks.size} different questions are drawn`);
});
console.log(JSON.stringify(problems));
