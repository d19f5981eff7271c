;;; bpftrace-mode.el --- Major mode for the bpftrace language  -*- lexical-binding: t -*-

;; SPDX-License-Identifier: Apache-2.0
;; Package-Requires: ((emacs "26.1"))

;;; Commentary:

;; Colours, indentation and comments of scripts.  With Eglot, `espy lsp' checks them while they are written:
;;
;;   (require 'bpftrace-mode)
;;   (add-hook 'bpftrace-mode-hook #'eglot-ensure)

;;; Code:

(require 'cc-mode)

(defgroup bpftrace nil
  "Scripts in the bpftrace language."
  :group 'languages)

(defcustom bpftrace-espy "espy"
  "The espy executable."
  :type 'string)

(defcustom bpftrace-kernel ""
  "A file of `espy snapshot' to check scripts for, or \"\" for the running kernel."
  :type 'string)

(defvar bpftrace-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 124b" table)
    (modify-syntax-entry ?* ". 23" table)
    (modify-syntax-entry ?\n "> b" table)
    (modify-syntax-entry ?_ "w" table)
    (modify-syntax-entry ?$ "_" table)
    (modify-syntax-entry ?@ "_" table)
    table)
  "Syntax table of `bpftrace-mode'.")

(defconst bpftrace-font-lock-keywords
  (list
   '("^[ \t]*\\([A-Za-z][A-Za-z0-9_]*\\)\\(:[^ \t\n{,]*\\)?"
     (1 font-lock-type-face) (2 font-lock-constant-face nil t))
   (cons (regexp-opt '("if" "else" "while" "for" "unroll" "return" "break" "continue" "comptime" "let" "macro" "fn"
                       "struct" "union" "enum" "config" "import" "sizeof" "offsetof" "typeof" "typeinfo")
                     'words)
         'font-lock-keyword-face)
   '("[@$][A-Za-z0-9_]*" . font-lock-variable-name-face)
   '("\\<\\([A-Za-z_][A-Za-z0-9_]*\\)[ \t]*(" (1 font-lock-function-name-face)))
  "Colours of `bpftrace-mode'.")

;;;###autoload
(define-derived-mode bpftrace-mode prog-mode "bpftrace"
  "Major mode for scripts in the bpftrace language."
  (setq-local comment-start "// ")
  (setq-local comment-end "")
  (setq-local font-lock-defaults '(bpftrace-font-lock-keywords))
  (setq-local indent-tabs-mode nil)
  (setq-local indent-line-function #'bpftrace-indent-line))

(defun bpftrace-indent-line ()
  "Indent the line by two columns for each open bracket."
  (interactive)
  (let ((depth (save-excursion
                 (back-to-indentation)
                 (- (car (syntax-ppss)) (if (looking-at "[])}]") 1 0)))))
    (if (<= (current-column) (current-indentation))
        (indent-line-to (* 2 (max depth 0)))
      (save-excursion (indent-line-to (* 2 (max depth 0)))))))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.bt\\'" . bpftrace-mode))
;;;###autoload
(add-to-list 'interpreter-mode-alist '("\\(?:espy\\|bpftrace\\)" . bpftrace-mode))

(with-eval-after-load 'eglot
  (defvar eglot-server-programs)
  (add-to-list 'eglot-server-programs
               (cons 'bpftrace-mode
                     (lambda (&rest _)
                       (list bpftrace-espy "lsp" :initializationOptions (list :kernel bpftrace-kernel))))))

(provide 'bpftrace-mode)
;;; bpftrace-mode.el ends here
