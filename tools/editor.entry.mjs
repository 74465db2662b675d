// What tools/vendor.py bundles into static/vendor/prism-code-editor/editor.js.
import { createEditor } from "prism-code-editor";
import { defaultCommands, editHistory, setIgnoreTab } from "prism-code-editor/commands";
import { matchBrackets } from "prism-code-editor/match-brackets";
import { highlightBracketPairs } from "prism-code-editor/highlight-brackets";
import { languages } from "prism-code-editor/prism";
import "prism-code-editor/prism/languages/django";
import "prism-code-editor/prism/languages/json";
import "prism-code-editor/prism/languages/python";
import "prism-code-editor/languages/python";
import "prism-code-editor/languages/json";

// A judge prompt is prose with Jinja in it, not HTML with Jinja in it.
languages.jinja = { django: languages.django.django };

export { createEditor, defaultCommands, editHistory, highlightBracketPairs, languages, matchBrackets, setIgnoreTab };
