"""lsp.py SERVER...: an editor's session with the language server, on the kernel KERNEL of the environment.

Prints a line for each answer; CHECKS of the answers are the expectations of the test.
"""
import json
import os
import subprocess
import sys

SCRIPT = """macro plus($x, y) { $x + y }
fn half($v : uint64) : uint64 { return $v / 2; }
tracepoint:syscalls:sys_enter_openat /pid == 1/ {
  $name = str(args.filename);
  @opens[comm, $name] = count();
  $t = (struct task_struct *)curtask;
  printf("\u00e4\U0001f600 %s %d\\n", $name, $t->pid);
  let $n = half(2);
  print(plus($n, 1));
  args.fi
}
interval:s:1 { strftme("%H", nsecs); }
"""
URI = "file:///tmp/session.bt"


class Editor:
    def __init__(self, command):
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last_id = 0
        self.notices = []

    def send(self, message):
        body = json.dumps(dict(message, jsonrpc="2.0")).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()

    def receive(self):
        length = 0
        while line := self.server.stdout.readline().strip():
            name, value = line.split(b":")
            if name == b"Content-Length":
                length = int(value)
        return json.loads(self.server.stdout.read(length))

    def ask(self, method, **params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        while (message := self.receive()).get("id") != self.last_id:
            self.notices.append(message)
        return message["result"] if "result" in message else message["error"]["message"]

    def tell(self, method, **params):
        self.send({"method": method, "params": params})

    def diagnostics(self):
        while True:
            while self.notices:
                message = self.notices.pop(0)
                if message["method"] == "textDocument/publishDiagnostics":
                    return message["params"]["diagnostics"]
            self.notices.append(self.receive())


def place(text, what):
    """Behind the first occurrence of `what`, in UTF-16."""
    before = text[: text.index(what) + len(what)]
    line = before[before.rfind("\n") + 1 :]
    return {"line": before.count("\n"), "character": len(line.encode("utf-16-le")) // 2}


def show(name, answer):
    print(f"{name}: {json.dumps(answer, sort_keys=True)}")


def replaced(answer):
    """The changed places of an edit, as line:column=text."""
    return [f"{e['range']['start']['line']}:{e['range']['start']['character']}={e['newText']}"
            for e in answer["changes"][URI]]


def main():
    editor = Editor(sys.argv[1:])
    editor.ask("initialize", initializationOptions={"kernel": os.environ["KERNEL"]})
    editor.tell("initialized")
    document = {"uri": URI}
    editor.tell("textDocument/didOpen", textDocument=dict(document, languageId="bpftrace", version=1, text=SCRIPT))
    found = editor.diagnostics()
    for each in found:
        print("diagnostic", each["range"]["start"]["line"], each["code"], json.dumps(each["message"]))

    def ask(method, what, **more):
        return editor.ask("textDocument/" + method, textDocument=document, position=place(SCRIPT, what), **more)

    def labels(what):
        answer = ask("completion", what)
        return [item["label"] for item in answer["items"]]

    show("members", labels("args.fi"))
    show("of a struct", [name for name in labels("$t->") if name in ("pid", "tgid", "comm", "absent")])
    show("tracepoints", labels("tracepoint:syscalls:sys_enter_opena")[:3])
    show("maps", labels("@o"))
    show("functions", [name for name in labels("  print") if name in ("printf", "plus", "half", "nsecs", "hist")])
    show("hover", ask("hover", "cou")["contents"]["value"].split("\n")[1])
    show("hover of a map", ask("hover", "@op")["contents"]["value"].split("\n")[1])
    show("hover of a variable", ask("hover", ", $na")["contents"]["value"].split("\n")[1])
    show("hover of a probe", "dfd" in ask("hover", "tracepoint:sysc")["contents"]["value"])
    help_text = ask("signatureHelp", "printf(\"\u00e4\U0001f600 %s %d\\n\", $na")
    show("signature", [help_text["signatures"][0]["label"], help_text["activeParameter"]])
    show("definition of a macro", ask("definition", "print(pl")["range"]["start"])
    show("definition of a map", ask("definition", "@ope")["range"]["start"])
    show("definition of a struct", ask("definition", "(struct task_s")["uri"])
    text = editor.ask("espy/typeDocument", uri="espy-btf:///path.c")["text"]
    show("its text", text.split("\n")[0])
    show("rename a variable", replaced(ask("rename", "  $na", newName="file")))
    show("rename a map", replaced(ask("rename", "@ope", newName="@files")))
    show("rename a function", replaced(ask("rename", "fn ha", newName="middle")))
    show("to a name in use", ask("rename", "  $na", newName="$t"))
    show("to no name", ask("rename", "  $na", newName="a b"))
    hints = editor.ask("textDocument/inlayHint", textDocument=document)
    show("types", [f"{h['position']['line']}{h['label']}" for h in hints])
    symbols = editor.ask("textDocument/documentSymbol", textDocument=document)
    show("symbols", [s["name"] for s in symbols])
    actions = editor.ask("textDocument/codeAction", textDocument=document, context={"diagnostics": found})
    show("action", [actions[0]["title"], replaced(actions[0]["edit"])])
    mended = SCRIPT.replace("strftme", "strftime").replace("  args.fi\n", "")
    editor.tell("textDocument/didChange", textDocument=document, contentChanges=[{"text": mended}])
    show("mended", editor.diagnostics())
    formatted = editor.ask("textDocument/formatting", textDocument=document)
    show("formatted", formatted[0]["newText"].split("\n")[:3])
    show("unknown", editor.ask("textDocument/dance"))
    editor.ask("shutdown")
    editor.tell("exit")
    print("status", editor.server.wait())


main()
