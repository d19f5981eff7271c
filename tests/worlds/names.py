#!/usr/bin/env python3
"""Names that are no names, in programs: of functions, parameters, members, files and USDT probes.

  names.py ESPY [--rounds N] [--seed S] [--keep DIRECTORY]

espy record, --record, espy trace and espy trace --graph must attach to the probes that -l lists, run one action for each,
and show every call, whatever bytes the names have. Without --rounds: the names that were found to do harm, and one round
of random ones with a fixed seed.
"""
import argparse, collections, json, os, random, re, shutil, subprocess, sys, tempfile

CALLS = 3     # of each function
LENGTH = 300  # of a place for a name in the program; one is longer
LONG = 4000
PRINTS = ' { printf("%s", probe); }'  # in JSON, keys of maps lose some bytes of names

# What was harmful, or may be: text that ends what it is in and begins something else.
NASTY = [
    b'two\n/0/', b'two\t/0/ ', b'x}', b'a.b', b'a->b', b'a b', b'a,b', b'{', b'}', b'"', b'\\', b'\\"', b"'", b'`id`', b'$(id)',
    b'$1', b'$#', b'@x', b'//', b'/*', b'*/', b';', b'/1/', b'/0/ {', b'*', b'?', b'[a-z]', b'+4', b'0x10', b':', b'::', b'a:b',
    b'\n', b'\r', b'\t', b'\x01', b'\x1b[31m', b'\x7f', b'\x80', b'\xff\xfe', b'\xc3', b'\xe2\x80\xae', '\u00e9'.encode(),
    b'%s', b'%', b'%%n', b'<b>', b'&amp;', b'(', b')', b'f(int)', b' /pid == 0/', b'"}; begin { exit(); } //', b'\n}\nbegin { exit(); }',
    b':hz:1', b',\nuprobe:./p:main', b'!', b'if', b'retval', b'args', b'func', b'_', b'9',
]
PIECES = NASTY + [b'a', b'x1', b'_', b' ', b'::', b'args.', b'count', b'probe', b'/', b'=', b'#', b'~', b'|', b'&', b'^']


def random_name(rng, most=60):
    out = b''.join(rng.choice(PIECES) for _ in range(rng.randint(1, 5)))
    if rng.random() < 0.2:
        out += bytes(rng.randrange(1, 256) for _ in range(rng.randint(1, 8)))
    return out[:most]


class Program:
    """A program with these names. Each function is called CALLS times, and each USDT probe is passed as often."""

    def __init__(self, path, functions=(), parameters=(), members=(), usdt=()):
        self.path = path
        names = {}  # the place in the program -> the name

        def place(kind, name):
            length = LONG if len(name) > LENGTH else LENGTH
            assert len(name) <= length, name
            key = '%s_%d_' % (kind, len(names))
            key += 'z' * (length - len(key))
            names[key] = name
            return key

        text = ['struct node { %s };' % ' '.join('const char *%s;' % place('m', each) for each in members) if members
                else 'struct node { int x; };', 'static struct node node;']
        calls = []
        given = list(functions)
        for each in given:
            symbol = place('f', each)
            declared = ['long %s' % place('p', one) for one in parameters]
            used = ' '.join('asm volatile("" :: "r"(%s));' % one.split()[1] for one in declared)
            values = ', '.join([str(7 + i) for i in range(len(parameters))] + ['&node'])
            text.append('__attribute__((noinline, noclone)) long %s(%s) { %s asm volatile("" :: "r"(n) : "memory"); return %d; }' %
                        (symbol, ', '.join(declared + ['struct node *n']), used, 40 + len(calls)))
            calls.append('%s(%s);' % (symbol, values))
        for provider, name in usdt:
            def listed(text):
                return ','.join('0x%02x' % byte for byte in text + b'\0')
            calls.append('asm volatile("990: nop\\n.pushsection .note.stapsdt,\\"\\",\\"note\\"\\n.balign 4\\n'
                         '.4byte 992f-991f,994f-993f,3\\n991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n993: .8byte 990b\\n'
                         '.8byte _.stapsdt.base\\n.8byte 0\\n.byte %s\\n.byte %s\\n.asciz \\"-8@$5\\"\\n994: .balign 4\\n'
                         '.popsection");' % (listed(provider), listed(name)))
        if usdt:
            text.append('asm(".pushsection .stapsdt.base,\\"a\\"\\n.weak _.stapsdt.base\\n.hidden _.stapsdt.base\\n'
                        '_.stapsdt.base: .space 1\\n.size _.stapsdt.base, 1\\n.popsection");')
        text.append('int main(void) { for (int i = 0; i < %d; i++) { %s } return 0; }' % (CALLS, ' '.join(calls)))
        build = tempfile.mkdtemp(dir='.')
        source, plain = build + '/source.c', build + '/plain'
        open(source, 'w').write('\n'.join(text))
        subprocess.run(['cc', '-g', '-O1', '-fno-omit-frame-pointer', '-o', plain, source], check=True)
        code = open(plain, 'rb').read()
        for key, name in names.items():
            code = code.replace(key.encode() + b'\0', name + b'\0' * (len(key) + 1 - len(name)))
            assert key.encode() not in code, key
        with open(path, 'wb') as file:
            file.write(code)
        os.chmod(path, 0o755)
        shutil.rmtree(build)


class Tester:
    def __init__(self, espy):
        self.espy = espy
        self.failures = 0
        self.checks = 0

    def run(self, *arguments):
        done = subprocess.run([self.espy, *arguments], capture_output=True, timeout=300)
        return done.returncode, done.stdout, done.stderr

    def expect(self, what, is_right, *evidence):
        self.checks += 1
        if is_right:
            return
        self.failures += 1
        print('FAILED: %s' % what)
        for each in evidence:
            print('   ', each if isinstance(each, (str, int)) else repr(each)[:3000])

    @staticmethod
    def attached(stderr):
        found = re.search(rb'Attached (\d+) probe', stderr)
        return int(found.group(1)) if found else -1

    @staticmethod
    def lines(stdout):
        return [json.loads(line) for line in stdout.splitlines() if line.strip()]

    def counts(self, stdout):
        """The events of each probe, which PRINTS has printed."""
        return collections.Counter(line['data'] for line in self.lines(stdout) if line['type'] == 'printf')

    def check(self, what, target, command, places, names=None, provider='uprobe', is_trace=True):
        """`places`: how many probes `target` has; `names`: how many of them can be told apart."""
        names = places if names is None else names
        whole = '%s:%s' % (provider, target)

        def is_right(found):
            is_once = names != places or set(found.values()) == {CALLS}
            return sum(found.values()) == places * CALLS and len(found) == names and is_once

        status, out, err = self.run('-l', whole)
        listed = out.count(b'\n')
        self.expect(what + ': -l', status == 0 and listed == names, 'listed %d of %d' % (listed, names), out, err)

        status, out, err = self.run('record', '-o', 'recording', '-c', command, whole)
        recorded = re.search(rb'Recorded (\d+) events', err)
        self.expect(what + ': record', status == 0 and self.attached(err) == places and recorded and
                    int(recorded.group(1)) == places * CALLS, 'status %d, attached %d of %d' % (status, self.attached(err), places), err)
        if recorded:
            status, out, err = self.run('-i', 'recording', '-f', 'json', '-q', '-e', quoted(whole) + PRINTS)
            found = self.counts(out)
            self.expect(what + ': -i', status == 0 and is_right(found), status, found, err)

        status, out, err = self.run('--strict', '-q', '-f', 'json', '--record', 'recording', '-c', command, '-e',
                                    quoted(whole) + PRINTS)
        found = self.counts(out)
        self.expect(what + ': --record', status == 0 and is_right(found),
                    status, found, err)
        if not is_trace:
            return
        for options in [[], ['--graph'], ['--graph', '--slower-than', '1ns']]:
            if options and provider == 'usdt':
                continue
            status, out, err = self.run('trace', *options, '-f', 'json', '-c', command, target if provider == 'uprobe' else whole)
            calls = [line for line in self.lines(out) if line['type'] in ('span_enter', 'instant')]
            returns = [line for line in self.lines(out) if line['type'] == 'span_exit']
            shown = collections.Counter(line['data']['name'] for line in calls)
            has_all = len(calls) == places * CALLS and len(returns) in ([0] if provider == 'usdt' else [len(calls)])
            self.expect('%s: trace %s' % (what, ' '.join(options)), status == 0 and has_all,
                        'status %d, %d calls, %d returns of %d' % (status, len(calls), len(returns), places * CALLS), shown, err)
            many = 2 if provider == 'uprobe' else 1
            more = 1 if '--slower-than' in options else 0  # sched_process_exit
            attached = next((line['data']['probes'] for line in self.lines(out) if line['type'] == 'attached_probes'), -1)
            self.expect('%s: probes of trace %s' % (what, ' '.join(options)), attached == many * places + more,
                        'attached %d of %d' % (attached, many * places + more))
        self.expect(what + ': pwned', not os.path.exists('pwned'))


def unversioned(symbol):
    """What is behind `@` in a symbol is its version, and no part of its name."""
    return symbol.split(b'@')[0]


def quoted(attach_point):
    return ':'.join('"%s"' % part.replace('\\', '\\\\').replace('"', '\\"') for part in attach_point.split(':'))


def test_finds(t):
    """What was found: each ended in another action, or in none."""
    evil = (b'x,1,1);} rawtracepoint:net_dev_queue { skboutput("pwned",args.skb,1500,0); } '
            b'uprobe:./bad:main { printf("%d %d %d",1')
    Program('bad', [b'work'], [b'x', evil])
    t.check('parameter as code', './bad:work', './bad', 1)

    Program('fine', [b'work_one', b'work_two'], [b'x'])
    Program('sly', [b'work_one', b'work_two', b'work_two\n/0/'], [b'x'])
    shutil.copy('fine', 'm_a')
    shutil.copy('sly', 'm_b')
    t.check('symbol as predicate', './m_[ab]:work_*', 'sh -c "./m_a; ./m_b"', 5)
    Program('symbol', [b'work_x}', b'work_y'], [b'a.b'])
    t.check('parameter with a dot', './symbol:work_*', './symbol', 2)
    Program('long', [b'work_' + b'l' * 3900, b'work_y'], [b'q' * 3900])
    t.check('long names', './long:work_*', './long', 2)


def test_text(t):
    """Text of calls has one line for each, and no control characters."""
    Program('red', [b'w_\x1b[31mred\ncall', b'w_b'], [b'a\x1b[32m\nb', b'retval'])
    for options in [[], ['--graph']]:
        status, out, err = t.run('trace', '-q', *options, '-c', './red', './red:w_*(return)' if options else './red:w_*')
        hidden = [byte for byte in out if byte < 0x20 and byte != 0x0a]
        lines = [line for line in out.splitlines() if b'w_' in line]
        t.expect('text ' + ' '.join(options), status == 0 and not hidden and len(lines) == (1 if options else 2) * 2 * CALLS,
                 status, out, err)
        t.expect('arguments in text', options or out.count(rb'a\x1b[32m\x0ab = 7, retval = 8') == 2 * CALLS, out)


def test_clashes(t):
    """Names that a script of espy trace has, too, and names of functions of the language."""
    Program('clash', [b'work_one'], [b'depth', b'begin', b'str', b'retval'])

    def spans(*arguments):
        status, out, err = t.run('trace', '-f', 'json', '-c', './clash', *arguments)
        return status, [line['data'] for line in t.lines(out) if line['type'] == 'span_enter'], err

    status, found, err = spans('./clash:work_one(depth > 6, depth, begin, str(str), retval, return)')
    values = [[each['args'].get(name) for name in ('depth', 'begin', 'retval')] for each in found]
    t.expect('names of the script', status == 0 and values == [[7, 8, 10]] * CALLS, status, found, err)
    for condition, count in [('return > begin', CALLS), ('return < begin', 0), ('return > depth', CALLS), ('return < depth', 0)]:
        status, found, err = spans('--graph', '--slower-than', '1ns', '--when', condition, './clash:work_one(depth)')
        t.expect('--when ' + condition, status == 0 and [each['args'] for each in found] == [{'depth': 7}] * count, status, found, err)


def test_round(t, what, rng, names):
    some = lambda count: [rng.choice(names) for _ in range(count)]
    functions = list({unversioned(b'w_' + each): b'w_' + each for each in names}.values())
    parameters = [b'first'] + some(3) + ([b''] if rng.random() < 0.5 else [])
    Program('program', functions, parameters, some(4))
    t.check(what + ': functions', './program:w_*', './program', len(functions))

    files = []
    for each in some(6):
        name = (b'file_' + each.replace(b'/', b'|'))[:200]
        if name not in files:
            files.append(name)
    Program('one', [b'w_one', b'w_' + rng.choice(names)], [rng.choice(names)])
    os.makedirs('files', exist_ok=True)
    for name in os.listdir(b'files'):
        os.unlink(b'files/' + name)
    for name in files:
        shutil.copy(b'one', b'files/' + name)
    open('all.py', 'w').write('import os, subprocess\nfor name in sorted(os.listdir(b"files")):\n'
                              '    subprocess.run([b"files/" + name])\n')
    t.check(what + ': files', './files/*:w_*', '%s all.py' % sys.executable, 2 * len(files))

    marks = list(dict.fromkeys((b'p' + rng.choice(names), b'm' + each) for each in names[:40]))
    Program('marked', [b'f'], [], [], marks)
    t.check(what + ': marks', './marked:*', './marked', len(marks), len({a + b':' + b for a, b in marks}), 'usdt')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('espy')
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--keep')
    given = parser.parse_args()
    espy = os.path.abspath(given.espy)
    if os.geteuid() != 0 or not shutil.which('cc') or os.uname().machine != 'x86_64':
        print('needs root, cc and x86_64')
        sys.exit(77)
    if given.keep:
        os.makedirs(given.keep, exist_ok=True)
    directory = given.keep or tempfile.mkdtemp(prefix='espy_names_')
    os.chdir(directory)
    t = Tester(espy)
    try:
        test_finds(t)
        test_text(t)
        test_clashes(t)
        test_round(t, 'nasty', random.Random(given.seed), NASTY)
        for i in range(given.rounds):
            rng = random.Random(given.seed * 1000 + i)
            test_round(t, 'round %d of seed %d' % (i, given.seed), rng, [random_name(rng) for _ in range(30)])
    finally:
        if not given.keep:
            os.chdir('/')
            shutil.rmtree(directory)
    print('%d checks, %d failed' % (t.checks, t.failures))
    sys.exit(1 if t.failures else 0)


if __name__ == '__main__':
    main()
