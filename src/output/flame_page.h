// The style sheet and the script of a flame graph, which are embedded in the SVG file.
#pragma once

#include <string_view>

namespace espy::output {

constexpr std::string_view kFlameStyle = R"(
  .bg { fill: #fdfcfa; }
  text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1c1b1a;
         white-space: pre; }
  .title { font: 600 17px system-ui, sans-serif; }
  .note, .button { font: 12.5px system-ui, sans-serif; fill: #6d6a66; }
  .details { font-size: 12.5px; }
  .button { cursor: pointer; }
  .button:hover { fill: #c4461c; text-decoration: underline; }
  .f { cursor: pointer; }
  .f text { pointer-events: none; }
  .wide rect { stroke: #fdfcfa; stroke-width: .6; }
  .f:hover rect { stroke: #1c1b1a; stroke-width: 1.6; }
  .above { opacity: .5; }
  .found rect { fill: #d63ff0; }
  .found text { fill: #fff; }
  input { box-sizing: border-box; width: 100%; height: 28px; padding: 2px 10px; border: 1px solid #cfcac3;
          border-radius: 14px; font: 13px system-ui, sans-serif; color: #1c1b1a; background: #fff; outline: none; }
  input:focus { border-color: #e07b39; box-shadow: 0 0 0 3px #e07b3933; }
  @media (prefers-color-scheme: dark) {
    .bg { fill: #1b1c1f; }
    .title, .details { fill: #ece9e4; }
    .note, .button { fill: #9b9790; }
    .wide rect { stroke: #1b1c1f; }
    .f:hover rect { stroke: #fff; }
    input { color: #ece9e4; background: #26282c; border-color: #44474d; }
  }
)";

// Frames are nested <svg> elements with places in percent: they clip their labels and follow the window by themselves.
constexpr std::string_view kFlameScript = R"(
(function () {
  'use strict';
  var svg = (document.currentScript && document.currentScript.closest('svg')) || document.documentElement;
  var pick = function (selector) { return svg.querySelector(selector); };
  var row = +svg.dataset.row, top = +svg.dataset.top, levels = +svg.dataset.levels;
  var details = pick('.details'), matched = pick('.matched'), reset = pick('.reset'), input = pick('input');
  var frames = [].map.call(svg.querySelectorAll('.f'), function (element) {
    var label = element.querySelector('text');
    return { element: element, label: label, name: label.textContent, depth: +element.dataset.d,
             x: parseFloat(element.getAttribute('x')), w: parseFloat(element.getAttribute('width')),
             title: element.querySelector('title').textContent };
  });
  var byElement = new Map(frames.map(function (frame) { return [frame.element, frame]; }));
  // Higher than the window, it hangs from the top: there the wide frames are, and all that can be clicked.
  var all = frames[0], shown = all, near = 1e-3, isFlipped = svg.getBoundingClientRect().height > window.innerHeight;

  function isWithin(inner, outer) { return inner.x > outer.x - near && inner.x + inner.w < outer.x + outer.w + near; }

  function draw() {
    var width = svg.getBoundingClientRect().width;
    frames.forEach(function (frame) {
      var isInside = frame.depth >= shown.depth && isWithin(frame, shown);
      var isAbove = frame.depth < shown.depth && isWithin(shown, frame);
      frame.element.style.display = isInside || isAbove ? '' : 'none';
      frame.element.classList.toggle('above', isAbove);
      if (!isInside && !isAbove) return;
      var w = isAbove ? 100 : frame.w / shown.w * 100;
      var level = isFlipped ? frame.depth : levels - 1 - frame.depth;
      frame.element.setAttribute('x', (isAbove ? 0 : (frame.x - shown.x) / shown.w * 100) + '%');
      frame.element.setAttribute('width', w + '%');
      frame.element.setAttribute('y', top + level * row);
      frame.element.classList.toggle('wide', w / 100 * width > 5);
      frame.label.style.display = w / 100 * width < 22 ? 'none' : 'inline';
    });
    reset.style.display = shown === all ? 'none' : '';
  }

  function pattern(text) {
    try { return new RegExp(text, 'i'); } catch (error) {
      return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
    }
  }

  // Frames stand parent before child: what lies in one that was found already is not counted again.
  function search() {
    var wanted = input.value && pattern(input.value), outer = [], share = 0, count = 0;
    frames.forEach(function (frame) {
      var isFound = !!wanted && wanted.test(frame.name);
      frame.element.classList.toggle('found', isFound);
      if (!isFound) return;
      count += 1;
      if (outer.some(function (other) { return other.depth < frame.depth && isWithin(frame, other); })) return;
      outer.push(frame);
      share += frame.w;
    });
    matched.textContent = wanted ? count + (count === 1 ? ' frame, ' : ' frames, ') + share.toFixed(2) + ' % of all' : '';
  }

  function frameOf(event) {
    var element = event.target.closest && event.target.closest('.f');
    return element && byElement.get(element);
  }

  svg.addEventListener('click', function (event) {
    var frame = frameOf(event);
    if (frame) { shown = frame; draw(); }
  });
  svg.addEventListener('mouseover', function (event) {
    var frame = frameOf(event);
    details.textContent = frame ? frame.title.replace('\n', '   ') : details.dataset.hint;
  });
  reset.addEventListener('click', function () { shown = all; draw(); });
  pick('.flip').addEventListener('click', function () { isFlipped = !isFlipped; draw(); });
  input.addEventListener('input', search);
  window.addEventListener('resize', draw);
  document.addEventListener('keydown', function (event) {
    if (event.key === 'Escape') {
      if (input.value) { input.value = ''; search(); } else { shown = all; draw(); }
      input.blur();
    } else if (event.target !== input && (event.key === '/' || (event.key === 'f' && event.ctrlKey))) {
      event.preventDefault();
      input.focus();
    }
  });
  svg.classList.add('live');
  draw();
})();
)";

}  // namespace espy::output
