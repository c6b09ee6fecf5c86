// What a program finds: `tools` and `console`. Evaluated once, before the program; its value is a function that is given
// the native side and the names of the tools, and answers the functions that the native side calls.
//
// A program may change every object it can reach. So whatever is used after it has started is taken aside first, and
// nothing here iterates, spreads or calls a method of an object that the program could have changed.
(function (native, plugins) {
  "use strict";
  const { Array, Date, Error, JSON, Map, Object, Promise, Proxy, Reflect, RegExp, Set, String } = globalThis;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const { isArray } = Array;
  const { keys, create, freeze, defineProperty } = Object;
  const { stringify } = JSON;
  const isMember = Reflect.has;
  const get = uncurry(Map.prototype.get), set = uncurry(Map.prototype.set), has = uncurry(Map.prototype.has);
  const remove = uncurry(Map.prototype.delete), each = uncurry(Map.prototype.forEach);
  const wellFormed = uncurry(String.prototype.toWellFormed);
  const includes = uncurry(String.prototype.includes), startsWith = uncurry(String.prototype.startsWith);
  const split = uncurry(String.prototype.split), slice = uncurry(String.prototype.slice);
  const eachMember = uncurry(Set.prototype.forEach), valueOfDate = uncurry(Date.prototype.valueOf);
  const toISOString = uncurry(Date.prototype.toISOString);
  const { isView } = ArrayBuffer;

  // Nothing but the language: what an engine adds one day is not there either.
  const language = new Set(
    ("Object Function Error EvalError RangeError ReferenceError SyntaxError TypeError URIError AggregateError " +
     "SuppressedError Array Iterator AsyncIterator Number parseInt parseFloat isNaN isFinite Infinity NaN undefined " +
     "Boolean String Symbol Math Reflect globalThis BigInt Date RegExp JSON Proxy Map Set WeakMap WeakSet " +
     "ArrayBuffer Uint8ClampedArray Int8Array Uint8Array Int16Array Uint16Array Int32Array Uint32Array " +
     "BigInt64Array BigUint64Array Float16Array Float32Array Float64Array DataView Promise WeakRef " +
     "FinalizationRegistry eval escape unescape encodeURI encodeURIComponent decodeURI decodeURIComponent").split(" "),
  );
  for (const name of Reflect.ownKeys(globalThis)) {
    if (typeof name === "string" && !language.has(name)) delete globalThis[name];
  }

  // Text for people -----------------------------------------------------------------------------------------------

  const DEEPEST = 8, LONGEST = 70_000;

  const errorText = (error) => {
    try {
      const name = String(error.name), message = String(error.message);
      return message === "" ? name : name === "" ? message : name + ": " + message;
    } catch {
      return "an error that cannot be shown";
    }
  };

  // A value as JSON, except that everything can be shown: cycles, depth, what JSON has no word for.
  const show = (value, outer, depth) => {
    switch (typeof value) {
      case "string": return stringify(value);
      case "bigint": return String(value) + "n";
      case "symbol": return String(value);
      case "function": return "[function" + (typeof value.name === "string" && value.name ? " " + value.name : "") + "]";
      case "object": break;
      default: return String(value);
    }
    if (value === null) return "null";
    if (value instanceof Error) return errorText(value);
    if (value instanceof Date) return valueOfDate(value) !== valueOfDate(value) ? "Invalid Date" : stringify(toISOString(value));
    if (value instanceof RegExp) return String(value);
    if (has(outer, value)) return "[circular]";
    if (depth >= DEEPEST) return isArray(value) ? "[…]" : "{…}";
    set(outer, value, true);
    let text = "", first = true;
    const add = (part) => {
      text += first ? part : "," + part;
      first = false;
      return text.length < LONGEST;
    };
    const inner = (member) => show(member, outer, depth + 1);
    if (isArray(value) || (isView(value) && value.length !== undefined)) {
      for (let at = 0; at < value.length && add(inner(value[at])); at += 1);
      text = "[" + text + "]";
    } else if (value instanceof Map) {
      each(value, (member, key) => text.length < LONGEST && add(inner(key) + "=>" + inner(member)));
      text = "Map{" + text + "}";
    } else if (value instanceof Set) {
      eachMember(value, (member) => text.length < LONGEST && add(inner(member)));
      text = "Set{" + text + "}";
    } else {
      const names = keys(value);
      for (let at = 0; at < names.length; at += 1) {
        if (!add(stringify(names[at]) + ":" + inner(value[names[at]]))) break;
      }
      text = "{" + text + "}";
    }
    remove(outer, value);
    return text;
  };

  const shown = (value) => {
    if (typeof value === "string") return value;
    try {
      return show(value, new Map(), 0);
    } catch (error) {
      return "[cannot be shown: " + errorText(error) + "]";
    }
  };

  // Frames of the program, without those of this file.
  const stackOf = (error) => {
    try {
      if (typeof error !== "object" || error === null || typeof error.stack !== "string") return "";
      const lines = split(error.stack, "\n");
      let text = "";
      for (let at = 0, kept = 0; at < lines.length && kept < 10; at += 1) {
        if (!includes(lines[at], "program.js")) continue;
        text += (kept > 0 ? "\n" : "") + slice(lines[at], 0, 300);
        kept += 1;
      }
      return wellFormed(text);
    } catch {
      return "";
    }
  };

  const reasonText = (reason) => wellFormed(slice(reason instanceof Error ? errorText(reason) : shown(reason), 0, 65_536));

  // Calls -----------------------------------------------------------------------------------------------------------

  const waiting = new Map(), none = new Map();
  let last = 0, pictures = false;

  const because = (error, message) => {
    defineProperty(error, "message", { __proto__: null, value: message, writable: true, configurable: true });
    return error;
  };

  const call = (plugin, tool, input) => {
    // Made here, so that its stack says where the call was made.
    const failure = new Error();
    const name = plugin === "$" ? "tools." + tool : tool === "" ? plugin : plugin + "." + tool;
    return new Promise((resolve, reject) => {
      const wrong = (what) => reject(because(failure, name + " " + what));
      let text = "{}";
      if (input !== undefined) {
        if (typeof input !== "object" || input === null || isArray(input)) {
          const got = input === null ? "null" : isArray(input) ? "an array" : "a " + typeof input;
          return wrong("takes one object, as in tools." + name + "({…}); got " + got);
        }
        try {
          text = stringify(input);
        } catch (error) {
          return wrong("was not called: its input cannot be written as JSON: " + errorText(error));
        }
        if (typeof text !== "string" || !startsWith(text, "{")) return wrong("takes one object; its input is none as JSON");
      }
      const refused = native.call(last + 1, wellFormed(plugin), wellFormed(tool), text);
      if (refused !== "") return wrong("was not called: " + refused);
      last += 1;
      set(waiting, last, { __proto__: null, resolve, reject, failure });
    });
  };

  const receive = (frame) => {
    const answer = frame.ans;
    const call = answer && get(waiting, answer.id);
    if (!call) return false;
    remove(waiting, answer.id);
    if (answer.kind === "content") pictures = true;
    if (answer.ok) call.resolve(answer.value);
    else call.reject(because(call.failure, answer.value));
    return true;
  };

  // Tools -----------------------------------------------------------------------------------------------------------

  const alias = (name) => name.replace(/[^A-Za-z0-9_$]/g, "_");

  // Other names of the names that have some: original names win, and two that share one have none.
  const aliases = (names, members) => {
    const found = new Map(), twice = new Set();
    for (const name of names) {
      const other = alias(name);
      if (other === name || Object.hasOwn(members, other)) continue;
      if (found.has(other)) twice.add(other);
      found.set(other, members[name]);
    }
    for (const other of twice) found.delete(other);
    return found;
  };

  // What is asked of any object, and means no tool unless there is one of that name.
  const NO_NAMES = new Map();
  for (const name of ["then", "toJSON", "constructor", "toString", "toLocaleString", "valueOf", "hasOwnProperty",
                      "isPrototypeOf", "propertyIsEnumerable", "__proto__"]) NO_NAMES.set(name, true);

  // An object of `members` that also answers to their aliases and, through `unknown`, to names it does not have.
  const open = (members, others, unknown) => {
    const made = new Map();
    const own = (key) => isMember(members, key);
    return new Proxy(freeze(members), freeze({
      __proto__: null,
      get: (_, key) => {
        if (typeof key !== "string") return undefined;
        if (own(key)) return members[key];
        if (has(others, key)) return get(others, key);
        if (has(NO_NAMES, key)) return undefined;
        if (!has(made, key)) set(made, key, unknown(key));
        return get(made, key);
      },
      has: (_, key) => own(key) || has(others, key),
      set: () => false,
      defineProperty: () => false,
      deleteProperty: () => false,
    }));
  };
  const plugin = (name, tools) => {
    const members = create(null);
    for (const tool of tools) members[tool] = (input) => call(name, tool, input);
    return open(members, aliases(tools, members), (tool) => (input) => call(name, tool, input));
  };

  const members = create(null);
  const names = keys(plugins);
  for (const name of names) members[name] = plugin(name, plugins[name]);
  const others = aliases(names, members);
  others.set("$list", () => call("$", "$list", {}));
  others.set("$search", (query) => call("$", "$search", typeof query === "string" ? { query } : query));
  others.set("$describe", (name) => call("$", "$describe", typeof name === "string" ? { name } : name));
  // A plugin that is not there, or was not when the program started. Called itself, it is a tool without its plugin.
  const stranger = (name) => {
    const known = open(create(null), none, (tool) => (input) => call(name, tool, input));
    return new Proxy((input) => call(name, "", input), freeze({
      __proto__: null,
      get: (_, key) => known[key],
      has: () => false,
      set: () => false,
      defineProperty: () => false,
      deleteProperty: () => false,
    }));
  };
  const tools = open(members, others, stranger);

  // Console ---------------------------------------------------------------------------------------------------------

  const write = (prefix) => (...values) => {
    let text = prefix;
    for (let at = 0; at < values.length && text.length < LONGEST; at += 1) {
      text += (at > 0 ? " " : "") + shown(values[at]);
    }
    native.log(wellFormed(text.length > LONGEST ? slice(text, 0, LONGEST) : text));
  };
  const writers = create(null);
  for (const name of ["log", "info", "debug", "trace"]) writers[name] = write("");
  writers.warn = write("[warn] ");
  writers.error = write("[error] ");
  const console = open(writers, none, () => () => undefined);

  defineProperty(globalThis, "tools", { value: tools, enumerable: true });
  defineProperty(globalThis, "console", { value: console });

  // The program ------------------------------------------------------------------------------------------------------

  // Pictures that a tool has returned are for programs; as text they would flood the reader.
  const withoutPictures = (_, value) => {
    const long = typeof value === "object" && value !== null && typeof value.data === "string" && value.data.length > 8_192
      && typeof value.mimeType === "string";
    if (!long) return value;
    const kib = (value.data.length * 3) / 4 / 1_024;
    return { type: value.type, mimeType: value.mimeType, data: "[" + value.mimeType + ", " + (kib | 0) + " KiB]" };
  };

  const settle = (value) => {
    if (value === undefined) return native.returned("nothing", "");
    if (typeof value === "string") return native.returned("text", wellFormed(value));
    let text;
    try {
      text = pictures ? stringify(value, withoutPictures) : stringify(value);
    } catch (error) {
      return native.failed("value-not-json", "what the program returned cannot be written as JSON: " + reasonText(error), "");
    }
    if (typeof text !== "string") {
      return native.failed("value-not-json", "the program returned a " + typeof value + ", which is no JSON value", "");
    }
    native.returned("json", wellFormed(text));
  };

  const run = async (program, isExpression) => {
    let value;
    try {
      value = await program();
      if (isExpression && typeof value === "function") value = await value(tools);
    } catch (error) {
      return native.failed("threw", reasonText(error), stackOf(error));
    }
    settle(value);
  };

  // Rejections --------------------------------------------------------------------------------------------------------

  const unhandled = new Map();
  const rejected = (promise, reason, handled) => {
    if (handled) remove(unhandled, promise);
    else set(unhandled, promise, reason);
  };
  const leftOver = () => {
    const texts = [];
    each(unhandled, (reason) => {
      if (texts.length < 20) defineProperty(texts, texts.length, { __proto__: null, value: reasonText(reason), enumerable: true });
    });
    return stringify(texts);
  };

  return { run, receive, rejected, leftOver, errorText, stackOf };
})
