" Syntax of the bpftrace language.
if exists('b:current_syntax')
  finish
endif

syntax match bpftraceProbe /^\s*\zs\a\w*\ze\(:\|\s*[,{]\|\s*$\)/
syntax match bpftraceAttachPoint /^\s*\a\w*\zs:[^ \t{,]\+/
syntax keyword bpftraceStatement if else while for unroll return break continue comptime
syntax keyword bpftraceStorage let struct union enum macro fn config import
syntax keyword bpftraceOperator sizeof offsetof typeof typeinfo
syntax keyword bpftraceBoolean true false
syntax keyword bpftraceContext args ctx retval locals
syntax match bpftraceType /\<\(u\?int\(8\|16\|32\|64\)\|bool\|string\|buffer\|\l\+_t\)\>/
syntax match bpftraceNumber /\<\(0x[0-9a-fA-F_]\+\|\d[0-9_]*\)\(ns\|us\|ms\|s\|m\|h\|d\|[uUlL]\{1,3}\)\?\>/
syntax match bpftraceFunction /\<\h\w*\ze\s*(/
syntax match bpftraceMap /@\w*/
syntax match bpftraceVariable /\$\(\w\+\|#\)/
syntax match bpftraceEscape /\\\(x\x\{1,2}\|\o\{1,3}\|.\)/ contained
syntax match bpftraceFormat /%[-+ #0]*[0-9*]*\(\.[0-9*]\+\)\?\(hh\|h\|ll\|l\|j\|z\|t\)\?[diouxXcspr%]/ contained
syntax region bpftraceString start=/"/ skip=/\\./ end=/"/ contains=bpftraceEscape,bpftraceFormat
syntax match bpftracePreprocessor /^\s*#\s*\(include\|define\|ifdef\|ifndef\|endif\|undef\|if\|else\)\>/
syntax match bpftraceComment /\/\/.*$/ contains=@Spell
syntax region bpftraceComment start=/\/\*/ end=/\*\// contains=@Spell
syntax match bpftraceShebang /\%^#!.*$/

highlight default link bpftraceProbe Type
highlight default link bpftraceAttachPoint Tag
highlight default link bpftraceStatement Statement
highlight default link bpftraceStorage StorageClass
highlight default link bpftraceOperator Operator
highlight default link bpftraceBoolean Boolean
highlight default link bpftraceContext Special
highlight default link bpftraceType Type
highlight default link bpftraceNumber Number
highlight default link bpftraceFunction Function
highlight default link bpftraceMap Identifier
highlight default link bpftraceVariable Identifier
highlight default link bpftraceEscape SpecialChar
highlight default link bpftraceFormat SpecialChar
highlight default link bpftraceString String
highlight default link bpftracePreprocessor PreProc
highlight default link bpftraceComment Comment
highlight default link bpftraceShebang Comment

let b:current_syntax = 'bpftrace'
