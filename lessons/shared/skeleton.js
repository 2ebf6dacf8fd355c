/* The HTML of a world before anything is shown in it. */

export function skeleton(world) {
  const keys = world.legend.map(([key, words]) => `<span><i class="k-${key}"></i>${words}</span>`);
  const controls = world.controls.map((c) => control(c, `${world.id_}-${c.key}`));
  return `<div class="w-grid">
    ${tabs(world.scenes)}
    <div class="w-ask" tabindex="-1"></div>
    <div class="w-fig">${view(world.cursor)}${player(world.player)}
      <p class="readout"></p><p class="legend">${keys.join("")}</p></div>
    <div class="w-count"><div data-meter></div><dl class="counts"></dl><div data-side></div></div>
    ${controls.length ? `<div class="controls w-full n${controls.length}">${controls.join("")}</div>` : ""}
    <p class="vh" role="status" aria-live="polite"></p></div>`;
}

function tabs(scenes) {
  if (scenes.length < 2) return "";
  const buttons = scenes.map((scene) => `<button type="button">${scene.name}</button>`);
  return `<div class="tabs w-full" role="group" aria-label="Scenes">${buttons.join("")}</div>`;
}

/** The figure; with a cursor it is a slider that the arrow keys move. */
function view(cursor) {
  if (!cursor) return `<div class="w-view"><svg role="img"></svg></div>`;
  return `<div class="w-view" role="slider" tabindex="0" aria-label="${cursor.label}" aria-valuemin="0">
    <svg aria-hidden="true"></svg></div>`;
}

function player(one) {
  if (!one) return "";
  return `<div class="play"><button class="btn" type="button" data-play>Play</button>
    <input type="range" data-at min="0" aria-label="${one.label}"></div>`;
}

function control(c, id) {
  if (c.kind === "range")
    return `<div class="ctl"><label class="l" for="${id}">${c.label} <output for="${id}"></output></label>
      <input type="range" id="${id}" data-key="${c.key}" min="${c.min}" max="${c.max}" step="${c.step}"></div>`;
  const options = c.options.map(
    ([, words], i) =>
      `<label><input type="radio" name="${id}" data-key="${c.key}" value="${i}"><span>${words}</span></label>`,
  );
  return `<fieldset class="ctl"><legend>${c.label}</legend>
    <div class="seg${c.wrapped ? " wrapped" : ""}">${options.join("")}</div></fieldset>`;
}
