"""The Agent Client Protocol (ACP): a relay between an editor and an agent that checks the agent's writes.

relay     the agent's process, and the two streams of messages
requests  the agent's requests that write, as calls that the hook core can check
guard     the sessions of the agent: registration, checks, end
"""
