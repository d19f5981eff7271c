// As much of a browser as the scripts of the page and of flame graphs use, without layout.
//
// Text that is parsed as markup is an error here, so that a test with hostile names finds it.
'use strict';

const fs = require('fs');
const path = require('path');
const vm = require('vm');

class Text {
  constructor(text) {
    this.textContent = String(text);
  }
}

class Element {
  constructor(tag) {
    Object.assign(this, {tagName: tag, childNodes: [], attributes: {}, dataset: {}, style: {}, listeners: {}});
    Object.assign(this, {className: '', hidden: false, disabled: false, parentElement: null});
    Object.assign(this, {ariaLabel: null, ariaLive: null, title: '', type: '', value: '', href: '', tabIndex: -1});
    Object.assign(this, {onclick: null, oninput: null, onchange: null, placeholder: '', download: ''});
    Object.assign(this, {scrollTop: 0, scrollHeight: 0, clientHeight: 0, width: 0, height: 0});
    const toggle = (name, isSet) => {
      const names = this.className.split(' ').filter(each => each && each !== name);
      this.className = (isSet ? [...names, name] : names).join(' ');
    };
    this.classList = {add: name => toggle(name, true), toggle};
  }

  get children() {
    return this.childNodes.filter(each => each instanceof Element);
  }
  get textContent() {
    return this.childNodes.map(each => each.textContent).join('');
  }
  set textContent(text) {
    this.childNodes = [new Text(text)];
  }
  set innerHTML(text) {
    throw new Error('parsed as markup: ' + text);
  }
  set outerHTML(text) {
    throw new Error('parsed as markup: ' + text);
  }
  insertAdjacentHTML(place, text) {
    throw new Error('parsed as markup: ' + text);
  }

  adopt(nodes) {
    return nodes.map(node => {
      if (!(node instanceof Element)) return node instanceof Text ? node : new Text(node);
      node.remove();
      node.parentElement = this;
      return node;
    });
  }
  append(...nodes) {
    this.childNodes.push(...this.adopt(nodes));
    this.chooseOption();
  }
  replaceChildren(...nodes) {
    for (const child of this.children) child.parentElement = null;
    this.childNodes = this.adopt(nodes);
    this.chooseOption();
  }
  // A list has its first option chosen, unless the chosen one is there.
  chooseOption() {
    const values = this.children.map(option => option.value);
    if (this.tagName === 'select' && values.length > 0 && !values.includes(this.value)) this.value = values[0];
  }
  insertBefore(node, before) {
    const [adopted] = this.adopt([node]);
    this.childNodes.splice(this.childNodes.indexOf(before), 0, adopted);
  }
  replaceWith(node) {
    this.parentElement.insertBefore(node, this);
    this.remove();
  }
  remove() {
    if (!this.parentElement) return;
    this.parentElement.childNodes = this.parentElement.childNodes.filter(each => each !== this);
    this.parentElement = null;
  }

  setAttribute(name, value) {
    this.attributes[name] = String(value);
    if (name === 'class') this.className = String(value);
    if (name.startsWith('data-')) this.dataset[name.slice('data-'.length)] = String(value);
  }
  getAttribute(name) {
    return name in this.attributes ? this.attributes[name] : null;
  }

  all() {
    return this.children.flatMap(child => [child, ...child.all()]);
  }
  // `selector`: a tag or a class.
  matches(selector) {
    return selector.startsWith('.') ? this.className.split(' ').includes(selector.slice(1)) : this.tagName === selector;
  }
  querySelector(selector) {
    return this.all().find(each => each.matches(selector)) || null;
  }
  querySelectorAll(selector) {
    return this.all().filter(each => each.matches(selector));
  }
  closest(selector) {
    if (this.matches(selector)) return this;
    return this.parentElement ? this.parentElement.closest(selector) : null;
  }

  getBoundingClientRect() {
    return {width: this.width, height: this.height};
  }
  addEventListener(type, listener) {
    this.listeners[type] = listener;
  }
  // Calls the listener of `this`, or of what is around it.
  dispatch(type, properties = {}) {
    const event = {target: this, preventDefault() {}, ...properties};
    for (let each = this; each; each = each.parentElement) {
      if (each['on' + type]) each['on' + type](event);
      if (each.listeners[type]) each.listeners[type](event);
    }
  }
  focus() {}
  blur() {}
}

// The elements of a tree without its texts: "div(p()span())".
function shape(element) {
  return element.tagName + '(' + element.children.map(shape).join('') + ')';
}

class Browser {
  constructor() {
    this.timers = [];
    this.root = new Element('html');
    this.document = Object.assign(new Element('document'), {
      documentElement: this.root,
      body: new Element('body'),
      activeElement: null,
      currentScript: null,
      createElement: tag => new Element(tag),
      createElementNS: (namespace, tag) => new Element(tag),
      write(text) {
        throw new Error('parsed as markup: ' + text);
      },
    });
    this.document.append(this.root);
    this.root.append(this.document.body);
    this.window = {innerHeight: 600, addEventListener() {}};
    this.streams = [];
    this.reloads = 0;
  }

  // What scripts see, by their names.
  globals() {
    const browser = this;
    return {
      document: this.document,
      window: this.window,
      addEventListener() {},
      setTimeout: call => this.timers.push(call),
      requestAnimationFrame: call => call(),
      performance: {now: () => 0},
      matchMedia: () => ({matches: false, addEventListener() {}}),
      getComputedStyle: () => ({getPropertyValue: () => '1, 2, 3'}),
      location: {
        search: '?token=x',
        reload: () => ++this.reloads,
      },
      EventSource: class {
        constructor(url) {
          this.url = url;
          browser.streams.push(this);
        } close() {
          this.isClosed = true;
        }
      },
    };
  }

  // Lets what was scheduled happen.
  wait() {
    for (const call of this.timers.splice(0)) call();
  }

  // Runs the scripts that a template names, as CMake puts them together, but does not start them. Returns a function
  // that gives what they define.
  load(template) {
    const file = path.join(__dirname, '../..', template);
    const names = [...fs.readFileSync(file, 'utf8').matchAll(/^\{\{(\w+\.js)\}\}$/gm)].map(match => match[1]);
    const scripts = names.map(name => fs.readFileSync(path.join(path.dirname(file), name), 'utf8')).join('');
    const globals = this.globals();
    const code = `(function (${Object.keys(globals).join(', ')}) { 'use strict'; ${scripts}
      return name => eval(name); })`;
    return vm.runInThisContext(code)(...Object.values(globals));
  }
}

// Names as traced programs may have them.
const kHostile = [
  '<img src=x onerror=alert(1)>',
  '</script><script>alert(1)</script>',
  '"><svg onload=alert(1)>',
  '\' onmouseover=\'alert(1)',
  ']]><b>&lt;b&gt;&amp;',
  '{{nonce}}${alert(1)}',
  '__proto__',
  'constructor',
  '\u202e\u0000\ufffe',
  '',
];

module.exports = {
  Browser,
  Element,
  shape,
  kHostile,
  kPage : 'src/serve/page/page.html',
  kFlame : 'src/output/svg/flame.svg'
};
