// Starts `espy lsp` for scripts, shows the C definitions that it leads to, and runs scripts in a terminal.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function settings() {
  return vscode.workspace.getConfiguration("espy");
}

function makeClient() {
  const server = { command: settings().get("path"), args: ["lsp"] };
  return new LanguageClient("espy", "espy", server, {
    documentSelector: [{ language: "bpftrace" }],
    initializationOptions: { kernel: settings().get("kernel") },
    synchronize: { configurationSection: "espy" },
  });
}

// The shell gets words that it takes as they are.
function quoted(word) {
  return `'${word.replace(/'/g, "'\\''")}'`;
}

async function runScript() {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return;
  if (editor.document.isUntitled) {
    vscode.window.showErrorMessage("espy: save the script first");
    return;
  }
  if (!(await editor.document.save())) return;
  const words = [quoted(settings().get("path")), quoted(editor.document.uri.fsPath)];
  const before = settings().get("run");
  const terminal = vscode.window.terminals.find((each) => each.name === "espy") || vscode.window.createTerminal("espy");
  terminal.show();
  terminal.sendText((before ? [before, ...words] : words).join(" "));
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("espy.run", runScript),
    vscode.workspace.registerTextDocumentContentProvider("espy-btf", {
      provideTextDocumentContent: async (uri) =>
        (await client.sendRequest("espy/typeDocument", { uri: uri.toString(true) })).text,
    }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("espy.path")) {
        await client.stop();
        client = makeClient();
        await client.start();
      }
    }),
  );
  client = makeClient();
  await client.start();
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
