// The algorithm of brwsim's kernel as a plain C++17 program: what a careful programmer would write by hand.
//
// One tree: visit every node of path probability >= theta breadth-first, sort them, take prefix sums of the
// weights and of their entropy terms (docs/theory.md, "Estimators"). Random numbers are brwsim's: Philox4x32-10
// keyed by node, so that the tree of (seed, tree index) is the same tree, which the benchmark checks.
//
// Built as a shared library by benchmarks/compiled.py; as a program, for a profiler:
//   g++ -O3 -march=native -std=c++17 trees.cpp -o trees && ./trees 1024 10000

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::uint64_t root_key = 0x243F6A8885A308D3;
constexpr std::uint32_t purpose_sticks = 0;
constexpr double theta_step = 0.25;
constexpr std::size_t small_bucket = 32;

struct Uniforms {
    double first, second;
};

// Philox4x32-10 (Salmon et al., SC 2011) of a node's draw, as two uniforms strictly inside (0, 1).
inline Uniforms two_uniforms(std::uint64_t seed, std::uint64_t tree, std::uint64_t key, std::uint32_t draw) {
    std::uint32_t c0 = static_cast<std::uint32_t>(key), c1 = static_cast<std::uint32_t>(key >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(tree), c3 = (purpose_sticks << 24) | draw;
    std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0, p1 = std::uint64_t{0xCD9E8D57} * c2;
        c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
        c1 = static_cast<std::uint32_t>(p1);
        c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
        c3 = static_cast<std::uint32_t>(p0);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    const auto unit = [](std::uint32_t high, std::uint32_t low) {
        return (static_cast<double>(std::uint64_t{high} << 20 | low >> 12) + 0.5) * 0x1p-52;
    };
    return {unit(c0, c1), unit(c2, c3)};
}

// SplitMix64's finaliser.
inline std::uint64_t child_key(std::uint64_t key, std::uint64_t rank) {
    std::uint64_t z = key + (rank + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

// psi(x) for x > 0: recurrence up to 8 and more, then the asymptotic series.
double digamma(double x) {
    double value = 0.0;
    for (; x < 8.0; x += 1.0) value -= 1.0 / x;
    const double s = 1.0 / (x * x);
    const double series =
        s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12))))));
    return value + std::log(x) - 0.5 / x - series;
}

// Size-biased stick breaking with 1 - discount >= 1: symmetric Dirichlet (vocab > 0) and Poisson-Dirichlet.
class Sticks {
public:
    Sticks(double discount, double strength, std::uint64_t vocab)
        : discount_(discount), strength_(strength), vocab_(vocab), psi_(digamma(1.0 - discount)) {}

    // Calls keep(share, rank) for the children of share >= floor; returns the entropy given the sticks drawn.
    template <class Keep>
    double children(std::uint64_t seed, std::uint64_t tree, std::uint64_t key, double floor, Keep keep) {
        const double excess = -discount_;
        double rest = 1.0, entropy = 0.0;
        std::uint64_t rank = 0;
        std::uint32_t draw = 0;
        while (rest >= floor && rest > 0.0) {
            ++rank;
            double taken = 1.0, left = 0.0;
            if (rank != vocab_) {
                const double inverse_b = 1.0 / (strength_ + static_cast<double>(rank) * discount_);
                while (true) {  // Beta(1 + excess, b) by thinning Beta(1, b)
                    const auto [u, v] = two_uniforms(seed, tree, key, draw++);
                    left = std::exp(std::log(u) * inverse_b);
                    taken = 1.0 - left;
                    if (excess == 0.0 || v * taken <= taken - excess * left) break;
                    if (taken > 0.0 && std::log(v) <= excess * std::log(taken)) break;
                }
            }
            const double share = rest * taken;
            rest *= left;
            if (share > 0.0) entropy -= share * std::log(share);
            if (share >= floor) keep(share, rank);
        }
        return rest > 0.0 ? entropy + rest * (remaining(rank) - std::log(rest)) : entropy;
    }

private:
    // Mean entropy of what is left after `rank` sticks: it depends on the rank alone, so compute it once.
    double remaining(std::uint64_t rank) {
        while (remaining_.size() <= rank)
            remaining_.push_back(digamma(strength_ + static_cast<double>(remaining_.size()) * discount_ + 1.0) - psi_);
        return remaining_[rank];
    }

    double discount_, strength_;
    std::uint64_t vocab_;
    double psi_;
    std::vector<double> remaining_;
};

// A fixed law: shares in non-increasing order, then `tail_count` children of `tail_share` each.
class Table {
public:
    Table(const double* shares, std::size_t size, double tail_share, std::uint64_t tail_count, double entropy)
        : shares_(shares), size_(size), tail_share_(tail_share), tail_count_(tail_count), entropy_(entropy) {}

    template <class Keep>
    double children(std::uint64_t, std::uint64_t, std::uint64_t, double floor, Keep keep) {
        std::uint64_t rank = 0;
        while (rank < size_ && shares_[rank] >= floor) {
            const double share = shares_[rank];
            keep(share, ++rank);
        }
        if (rank == size_ && tail_share_ >= floor)
            while (rank < size_ + tail_count_) keep(tail_share_, ++rank);
        return entropy_;
    }

private:
    const double* shares_;
    std::size_t size_;
    double tail_share_;
    std::uint64_t tail_count_;
    double entropy_;
};

struct Ranked {
    double weight, term;
};

// The arrays of one tree, kept from tree to tree.
struct Tree {
    std::vector<double> weights;
    std::vector<std::uint64_t> keys;
    std::vector<double> terms;
    std::vector<std::uint32_t> bounds;
    std::vector<Ranked> sorted;

    template <class Law>
    void grow(Law& law, double mu, std::uint64_t seed, std::uint64_t tree, double theta) {
        weights.assign(1, 1.0);
        keys.assign(1, root_key);
        terms.clear();
        for (std::size_t head = 0; head < weights.size(); ++head) {
            const double weight = weights[head];
            const std::uint64_t key = keys[head];
            const double entropy = law.children(seed, tree, key, theta / weight, [&](double share, std::uint64_t rank) {
                if (weight * share < theta) return;
                weights.push_back(weight * share);
                keys.push_back(child_key(key, rank));
            });
            terms.push_back(weight * (entropy - mu));
        }
    }

    // Heaviest first, ties breadth-first. lightest/weight is nearly uniform on (0, 1], so that a counting sort
    // on it leaves about one node to a bucket; only lattice laws fill large ones.
    void sort() {
        const std::size_t size = weights.size();
        const double scale = *std::min_element(weights.begin(), weights.end()) * static_cast<double>(size - 1);
        bounds.assign(size + 1, 0);
        for (const double weight : weights) ++bounds[static_cast<std::size_t>(scale / weight) + 1];
        for (std::size_t bucket = 0; bucket < size; ++bucket) bounds[bucket + 1] += bounds[bucket];
        sorted.resize(size);
        for (std::size_t i = 0; i < size; ++i)  // afterwards bounds[bucket] is where the bucket ends
            sorted[bounds[static_cast<std::size_t>(scale / weights[i])]++] = {weights[i], terms[i]};
        const auto before = [](const Ranked& a, const Ranked& b) { return a.weight > b.weight; };
        std::size_t start = 0;
        for (std::size_t bucket = 0; bucket < size; ++bucket) {
            const std::size_t stop = bounds[bucket];
            if (stop - start > small_bucket) {
                std::stable_sort(sorted.begin() + start, sorted.begin() + stop, before);
            } else {
                for (std::size_t i = start + 1; i < stop; ++i) {
                    const Ranked node = sorted[i];
                    std::size_t j = i;
                    for (; j > start && before(node, sorted[j - 1]); --j) sorted[j] = sorted[j - 1];
                    sorted[j] = node;
                }
            }
            start = stop;
        }
    }
};

template <class Law>
std::int64_t grow_trees(Law law, double mu, std::uint64_t seed, std::uint64_t first_tree, std::int64_t count,
                        const std::int64_t* grid, std::int64_t points, double theta, double* sums, double* terms) {
    const auto limit = static_cast<std::size_t>(grid[points - 1]);
    Tree tree;
    std::int64_t visited = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        double floor = theta;
        do {  // too few nodes: the same tree, further down
            tree.grow(law, mu, seed, first_tree + static_cast<std::uint64_t>(i), floor);
            visited += static_cast<std::int64_t>(tree.weights.size());
            floor *= theta_step;
        } while (tree.weights.size() < limit);
        tree.sort();
        double weight_sum = 0.0, term_sum = 0.0;
        std::int64_t done = 0;
        for (std::int64_t point = 0; point < points; ++point) {
            for (; done < grid[point]; ++done) {
                weight_sum += tree.sorted[done].weight;
                term_sum += tree.sorted[done].term;
            }
            sums[i * points + point] = weight_sum;
            terms[i * points + point] = term_sum;
        }
    }
    return visited;
}

}  // namespace

extern "C" {

// Both return the number of nodes visited; sums and terms are count rows of `points` values.
std::int64_t grow_sticks(double discount, double strength, std::uint64_t vocab, double mu, std::uint64_t seed,
                         std::uint64_t first_tree, std::int64_t count, const std::int64_t* grid, std::int64_t points,
                         double theta, double* sums, double* terms) {
    return grow_trees(Sticks(discount, strength, vocab), mu, seed, first_tree, count, grid, points, theta, sums, terms);
}

std::int64_t grow_table(const double* shares, std::int64_t size, double tail_share, std::uint64_t tail_count,
                        double entropy, double mu, std::uint64_t seed, std::uint64_t first_tree, std::int64_t count,
                        const std::int64_t* grid, std::int64_t points, double theta, double* sums, double* terms) {
    return grow_trees(Table(shares, static_cast<std::size_t>(size), tail_share, tail_count, entropy), mu, seed,
                      first_tree, count, grid, points, theta, sums, terms);
}
}

// ./trees [P [TREES [ALPHA [VOCAB]]]]: speed for a symmetric Dirichlet law; alpha = 0 is Poisson-Dirichlet(1).
int main(int argc, char** argv) {
    const std::int64_t top_P = argc > 1 ? std::atoll(argv[1]) : 1024;
    const std::int64_t count = argc > 2 ? std::atoll(argv[2]) : 1000;
    const double alpha = argc > 3 ? std::atof(argv[3]) : 0.02;
    const std::uint64_t vocab = alpha == 0.0 ? 0 : argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 50;
    const double strength = vocab ? static_cast<double>(vocab) * alpha : 1.0;
    const double mu = digamma(strength + 1.0) - digamma(1.0 + alpha);
    const double theta = 1.0 / (mu * (static_cast<double>(top_P) + 4.0 * std::sqrt(static_cast<double>(top_P)) + 4.0));
    std::vector<double> sums(count), terms(count);
    const auto start = std::chrono::steady_clock::now();
    const auto visited =
        grow_sticks(-alpha, strength, vocab, mu, 0, 0, count, &top_P, 1, theta, sums.data(), terms.data());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double mean = 0.0;
    for (const double sum : sums) mean += sum / static_cast<double>(count);
    std::printf("%.1f trees/s, %.4g nodes/s, %.3f nodes visited for each kept, mean %.4f\n", count / seconds,
                static_cast<double>(count) * top_P / seconds, static_cast<double>(visited) / count / top_P, mean);
}
