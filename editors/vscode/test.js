// The server, asked by VS Code's own client of the protocol, and the grammar, by its own tokenizer.
//
// Usage: ESPY=PATH npm test
const assert = require("assert");
const fs = require("fs");
const path = require("path");
const { spawn } = require("child_process");
const rpc = require("vscode-languageserver-protocol/node");

const script = `tracepoint:syscalls:sys_enter_openat /pid == 1/ {
  @opens[comm] = count();  // by command
  printf("%s\\n", str(args.fi));
}
`;
const uri = "file:///tmp/test.bt";

async function testServer() {
  const server = spawn(process.env.ESPY || "espy", ["lsp"]);
  const connection = rpc.createProtocolConnection(
    new rpc.StreamMessageReader(server.stdout), new rpc.StreamMessageWriter(server.stdin));
  connection.listen();
  const published = new Promise((resolve) =>
    connection.onNotification(rpc.PublishDiagnosticsNotification.type, resolve));
  const kernel = path.resolve(__dirname, "../../tests/kernels/6.18-full-x86_64");
  const answer = await connection.sendRequest(rpc.InitializeRequest.type, {
    processId: process.pid, rootUri: null, capabilities: {}, initializationOptions: { kernel } });
  assert.equal(answer.serverInfo.name, "espy");
  await connection.sendNotification(rpc.InitializedNotification.type, {});
  await connection.sendNotification(rpc.DidOpenTextDocumentNotification.type, {
    textDocument: { uri, languageId: "bpftrace", version: 1, text: script } });
  const { diagnostics } = await published;
  assert.deepEqual(diagnostics.map((each) => each.code), ["unknown-argument"]);
  const at = (line, character) => ({ textDocument: { uri }, position: { line, character } });
  const members = await connection.sendRequest(rpc.CompletionRequest.type, at(2, 28));
  assert.ok(members.items.map((item) => item.label).includes("filename"));
  const hover = await connection.sendRequest(rpc.HoverRequest.type, at(1, 19));
  assert.match(hover.contents.value, /count\(\)/);
  await connection.sendRequest(rpc.ShutdownRequest.type);
  const ended = new Promise((resolve) => server.on("exit", resolve));
  await connection.sendNotification(rpc.ExitNotification.type);
  assert.equal(await ended, 0);
}

async function testGrammar() {
  const textmate = require("vscode-textmate");
  const oniguruma = require("vscode-oniguruma");
  const wasm = fs.readFileSync(path.join(path.dirname(require.resolve("vscode-oniguruma")), "onig.wasm"));
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const file = path.join(__dirname, "syntaxes/bpftrace.tmLanguage.json");
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text) }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(file, "utf8"), file) });
  const grammar = await registry.loadGrammar("source.bpftrace");
  const scopes = {};
  let stack = textmate.INITIAL;
  for (const line of script.split("\n")) {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, stack);
    stack = ruleStack;
    for (const token of tokens)
      scopes[line.slice(token.startIndex, token.endIndex)] = token.scopes[token.scopes.length - 1];
  }
  assert.equal(scopes["tracepoint"], "entity.name.type.probe.bpftrace");
  assert.equal(scopes[":syscalls:sys_enter_openat"], "entity.name.tag.probe.bpftrace");
  assert.equal(scopes["@opens"], "variable.other.map.bpftrace");
  assert.equal(scopes["printf"], "entity.name.function.bpftrace");
  assert.equal(scopes["%s"], "constant.other.placeholder.bpftrace");
  assert.equal(scopes["// by command"], "comment.line.double-slash.bpftrace");
  assert.equal(scopes["args"], "variable.language.bpftrace");
}

testServer().then(testGrammar).then(() => console.log("2 passed"), (error) => {
  console.error(error);
  process.exit(1);
});
