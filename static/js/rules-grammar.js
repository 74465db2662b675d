// Colours of the scoring-rule language: header lines, blocks with Python or a rule's text inside.
import { languages } from "../vendor/prism-code-editor/editor.js";

languages.rules = {
  comment: { pattern: /^\s*# DSL\s*$/m },
  python: {
    pattern: /(^[ \t]*<((?:代码|code)[^<>\n]*)>[ \t]*\n)[\s\S]*?(?=\n[ \t]*<\/\2>)/m,
    lookbehind: true,
    greedy: true,
    inside: languages.python,
  },
  "rule-text": {
    pattern: /(^[ \t]*<((?:规则|rule)[^<>\n]*)>[ \t]*\n)[\s\S]*?(?=\n[ \t]*<\/\2>)/m,
    lookbehind: true,
    greedy: true,
    alias: "string",
  },
  tag: { pattern: /^[ \t]*<\/?[^<>\n]+>[ \t]*$/m },
  keyword: { pattern: /^[ \t]*@(?:全部字段|单个字段|聚合方式|格式限制|all|whole|aggregate|format)(?=[ \t]*[:：])/m },
  line: {
    pattern: /^[^:：\n]*[:：].*$/m,
    inside: {
      // First, while the line is still whole: the second part, whatever colons the third one holds.
      function: { pattern: /(^[^:：]+[:：]\s*)[^:：\s][^:：]*/, lookbehind: true },
      property: { pattern: /^[^:：]+(?=[:：])/, alias: "variable" },
      punctuation: /^[:：]/,
      string: /\S[\s\S]*/,
    },
  },
};
