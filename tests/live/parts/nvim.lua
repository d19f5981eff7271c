-- A session in Neovim: members are completed, hist is explained, a map is renamed, an error is shown and goes away.
-- Environment: ESPY, KERNEL, EDITORS (the directory with nvim/ and vim/), SCRIPT (a file to write).
vim.opt.runtimepath:prepend(vim.env.EDITORS .. '/vim')
vim.opt.runtimepath:prepend(vim.env.EDITORS .. '/nvim')
vim.cmd('filetype off | filetype plugin on')
require('espy').setup({ path = vim.env.ESPY, kernel = vim.env.KERNEL })

local lines = {
  'tracepoint:syscalls:sys_enter_openat {',
  '  @opens[comm] = count();',
  '  @sizes = hist(args.fi);',
  '}',
}
vim.fn.writefile(lines, vim.env.SCRIPT)
vim.cmd('edit ' .. vim.env.SCRIPT)
print('filetype ' .. vim.bo.filetype)

local function wait(what, condition)
  if not vim.wait(20000, condition, 20) then
    print('no ' .. what)
    vim.cmd('cquit')
  end
end

local function ask(method, line, column, more)
  local params = { textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = column } }
  local answers = vim.lsp.buf_request_sync(0, method, vim.tbl_extend('force', params, more or {}), 20000)
  for _, answer in pairs(answers or {}) do
    return answer.result
  end
end

wait('diagnostic', function() return #vim.diagnostic.get(0) == 1 end)
print('error ' .. vim.diagnostic.get(0)[1].code)

local words = {}
for _, item in ipairs(ask('textDocument/completion', 2, 22).items) do
  table.insert(words, item.label)
end
print('members ' .. table.concat(words, ' '))
print('hover ' .. vim.split(ask('textDocument/hover', 2, 14).contents.value, '\n')[2])

vim.fn.cursor(2, 4)
vim.lsp.buf.rename('@files')
wait('renaming', function() return vim.fn.getline(2):find('@files', 1, true) end)
print('renamed ' .. vim.fn.getline(2))

vim.fn.setline(3, '  @sizes = hist(args.flags);')
wait('correction', function() return #vim.diagnostic.get(0) == 0 end)
print('corrected')

vim.fn.setline(3, '  print(((struct path *)0)->mnt);')
vim.cmd('edit! espy-btf:///path.c')
print('definition ' .. vim.fn.getline(1))
vim.cmd('qall!')
