# What GitHub Copilot CLI takes for an answer where no hook can run (hook.sh).
denial_form='{"permissionDecision": "deny", "permissionDecisionReason": "%s"}'
greeting_form='{"systemMessage": "%s", "additionalContext": "%s"}'
