# What Gemini CLI takes for a denial where no hook can run (hook.sh).
denial_form='{"decision": "deny", "reason": "%s"}'
