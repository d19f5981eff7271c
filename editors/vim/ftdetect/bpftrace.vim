autocmd BufNewFile,BufRead *.bt setfiletype bpftrace
autocmd BufNewFile,BufRead * if getline(1) =~# '^#!.*\<\(espy\|bpftrace\)\>' | setfiletype bpftrace | endif
