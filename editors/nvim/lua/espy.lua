-- espy's language server in Neovim (0.7 or later):
--
--   require('espy').setup({ path = 'espy', kernel = '' })
--
-- `path` is the executable; `kernel` is a file of `espy snapshot`, or '' for the running kernel.
local M = {}

local function start(options)
  local definition = {
    name = 'espy',
    cmd = { options.path or 'espy', 'lsp' },
    init_options = { kernel = options.kernel or '' },
    root_dir = vim.fn.getcwd(),
  }
  if vim.lsp.start then
    return vim.lsp.start(definition)
  end
  for id, client in pairs(vim.lsp.buf_get_clients()) do
    if client.name == 'espy' then
      return id
    end
  end
  M.client = M.client and vim.lsp.get_client_by_id(M.client) and M.client or vim.lsp.start_client(definition)
  vim.lsp.buf_attach_client(0, M.client)
  return M.client
end

-- The C definition of a type of the kernel, to which "go to definition" leads.
local function show_type(buffer, uri)
  for _, client in pairs(vim.lsp.get_active_clients()) do
    if client.name == 'espy' then
      local answer = client.request_sync('espy/typeDocument', { uri = uri }, 5000, buffer)
      local text = answer and answer.result and answer.result.text or ''
      vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, '\n'))
    end
  end
  vim.bo[buffer].buftype = 'nofile'
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].filetype = 'c'
end

function M.setup(options)
  options = options or {}
  local group = vim.api.nvim_create_augroup('espy', { clear = true })
  vim.api.nvim_create_autocmd('FileType', {
    group = group,
    pattern = 'bpftrace',
    callback = function()
      start(options)
      vim.bo.omnifunc = 'v:lua.vim.lsp.omnifunc'
    end,
  })
  vim.api.nvim_create_autocmd('BufReadCmd', {
    group = group,
    pattern = 'espy-btf://*',
    callback = function(event)
      local uri = event and event.match or vim.fn.expand('<amatch>')
      show_type(event and event.buf or vim.api.nvim_get_current_buf(), uri)
    end,
  })
end

return M
