" Comments, indentation and the formatter of scripts in the bpftrace language.
if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal commentstring=//\ %s comments=s1:/*,mb:*,ex:*/,://
setlocal expandtab shiftwidth=2 softtabstop=2 cindent
setlocal formatprg=espy\ --fmt\ -
let b:undo_ftplugin = 'setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< cindent< formatprg<'
