"""Models written in Python that are the same as models of Nacre: gcn and gat.
bench/python_overhead.py trains them, too."""
import nacre


@nacre.model(needs_self_loops=True, supports_edge_weight=True)
def py_gcn(net, options):
    """graph convolution with symmetric normalisation"""
    def layer(x, out, last):
        return net.pull_linear(x, "lin", out, weighting=net.symmetric_norm(x))
    return nacre.stack_layers(net, options, layer)


@nacre.model(needs_self_loops=True, heads=4, activation="elu")
def py_gat(net, options):
    def layer(x, out, last):
        heads = options.out_heads if last else options.heads
        z = net.split_heads(net.linear(x, "lin", out * heads if last else out, bias=False), heads)
        score = net.neighbor_apply(net.dot(z, "att_src"), net.dot(z, "att_dst"),
                                   lambda s, d: net.leaky_relu(s + d, 0.2))
        share = net.dropout(net.edge_softmax(score), options.attention_dropout)
        y = net.pull(z, "mix", share)
        return net.add_bias(net.mean_heads(y) if last else net.merge_heads(y))
    return nacre.stack_layers(net, options, layer)
