import { jsx as _jsx } from "react/jsx-runtime";
import { useConversation } from "@leat/client/react";
import { createContext, useContext, useEffect, useMemo } from "react";
const GatewayContext = createContext(undefined);
const ThreadContext = createContext(undefined);
/** Provides the client for the components inside. Client and live events belong to the application, which closes them. */
export function LeatProvider({ client, live, children }) {
    const gateway = useMemo(() => ({ client, live }), [client, live]);
    return _jsx(GatewayContext.Provider, { value: gateway, children: children });
}
function useGateway() {
    const gateway = useContext(GatewayContext);
    if (!gateway)
        throw new Error("this component of @leat/react must be inside a LeatProvider");
    return gateway;
}
export const useClient = () => useGateway().client;
export const useLive = () => useGateway().live;
/** Opens a conversation, and follows it for the components inside while it is mounted. */
export function Thread({ id, title, agent, children }) {
    const client = useClient();
    // Before the effect of useConversation, which would not find a conversation that isn't being created.
    useEffect(() => void client.open(id, { ...(title !== undefined && { title }), ...(agent !== undefined && { agent }) }), [client, id, title, agent]);
    return _jsx(ThreadContext.Provider, { value: useConversation(client, id), children: children });
}
/** The state of the Thread around the component, and its conversation with all commands. */
export function useThread() {
    const thread = useContext(ThreadContext);
    if (!thread)
        throw new Error("this component of @leat/react must be inside a Thread");
    return thread;
}
