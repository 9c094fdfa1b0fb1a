-- Opens a file with the language server, and writes each moment into a file of the test's own. It waits for states.
local function leave(name, value)
  vim.fn.writefile({ vim.fn.json_encode(value) }, vim.env.MOMENTS .. "/" .. name .. ".part")
  vim.fn.rename(vim.env.MOMENTS .. "/" .. name .. ".part", vim.env.MOMENTS .. "/" .. name)
end

local function wait(is_so)
  if not vim.wait(tonumber(vim.env.MOMENTS_MS), is_so, 50) then
    leave("late", vim.diagnostic.get(0))
    vim.cmd("cquit")
  end
end

local function hints()
  return vim.tbl_map(function(one) return { one.lnum + 1, one.message, one.severity } end, vim.diagnostic.get(0))
end

local said = {}
vim.lsp.handlers["window/showMessage"] = function(_, result) table.insert(said, result.message) end

vim.cmd("edit " .. vim.env.EDITED)
local id = vim.lsp.start_client({ cmd = vim.fn.json_decode(vim.env.SERVER), root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(0, id)
wait(function() return #hints() == 2 end)
leave("opened", hints())

wait(function() return #hints() == 1 end)
leave("unlocked", hints())

local document = { textDocument = vim.lsp.util.make_text_document_params() }
local lenses = vim.lsp.buf_request_sync(0, "textDocument/codeLens", document, 30000)[id].result
local command = { command = lenses[1].command.command, arguments = lenses[1].command.arguments }
local answer = vim.lsp.buf_request_sync(0, "workspace/executeCommand", command, 30000)[id].result
leave("lens", { lenses[1].command.title, answer })

vim.api.nvim_buf_set_lines(0, 2, 3, false, { "typed by a person" })
vim.cmd("write")
leave("saved", said)
wait(function() return vim.fn.filereadable(vim.env.MOMENTS .. "/over") == 1 end)
vim.lsp.stop_client(id)
wait(function() return vim.lsp.get_client_by_id(id) == nil end)
vim.cmd("qall!")
