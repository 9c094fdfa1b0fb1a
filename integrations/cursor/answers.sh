# What Cursor takes for an answer where no hook can run (hook.sh). What is for the user alone it shows nobody.
denial_form='{"permission": "deny", "user_message": "%s"}'
greeting_form='{"additional_context": "%.0s%s"}'
