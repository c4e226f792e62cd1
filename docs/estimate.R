# Shares of the original values, from protocol.json and sanitised.csv of a public folder, in R.
#
#   Rscript estimate.R out/public > shares.csv
#
# It needs the package jsonlite and nothing else. The estimates are those of `privacyfunnel estimate`: rows and the noisy
# counts of the protocol file, weighed by their variances; of each share the weights whose interval is shortest.
# It reads protocols of a published model (the default) for one or two columns. Wide releases are read by weights.

library(jsonlite)
folder <- commandArgs(trailingOnly = TRUE)[1]
protocol <- fromJSON(file.path(folder, "protocol.json"), simplifyVector = FALSE)
rows <- read.csv(file.path(folder, "sanitised.csv"), colClasses = "character", check.names = FALSE, na.strings = NULL)
if (protocol$kind != "channel" || is.null(protocol$model)) stop("estimate.R reads channels of a published model.")

# The channel q(output | value): integers of 64 bits, which R holds as doubles.
values <- do.call(rbind, lapply(protocol$combinations, function(codes) unlist(codes) + 1))
if (is.null(values)) values <- matrix(seq_along(protocol$publish[[1]]$labels)) # of one column all, in their order
outputs <- length(protocol$law$outputs)
channel <- t(sapply(protocol$law$rows, function(entries) {
  chances <- numeric(outputs)
  for (entry in entries) chances[entry[[1]] + 1] <- as.numeric(entry[[2]])
  chances / sum(chances)
}))

# Which output each row shows: by its code, or by its values.
if (length(protocol$outcomes)) {
  shown <- as.integer(sub("^y", "", rows[[protocol$outcomes[[1]]$column]]))
} else {
  text <- sapply(protocol$law$outputs, function(labels) paste(unlist(labels), collapse = "\r"))
  columns <- sapply(protocol$publish, function(each) each$column)
  shown <- match(do.call(paste, c(unname(as.list(rows[columns])), sep = "\r")), text)
}
if (anyNA(shown)) stop("The table does not belong to this protocol.")
n <- length(shown)
seen <- tabulate(shown, outputs) / n

# Noisy shares of the same rows, over all secrets, and shares near which they lie.
matrix_of <- function(listed) do.call(rbind, lapply(listed, unlist))
model <- protocol$model
total <- colSums(matrix_of(model$counts))
noise <- colSums(matrix_of(model$noise_variance))
near <- Reduce(`+`, lapply(model$weights, function(each) as.numeric(unlist(each))))
near <- near / sum(near)
if (!is.null(model$rest)) { # secrets that are not listed go with values as everybody does, give or take as much again
  left <- max(n - sum(total), 0)
  noise <- noise + ((left + 2 * sqrt(sum(noise))) * near)^2
  total <- total + left * near
}
if (model$rows != n) stop("The noisy counts are those of other rows.")
counted <- total / n
variance <- noise / n^2

# Weights of least variance where the shares have a prior variance of D / tau: see estimation/linear.py.
p <- (n * near + 1) / (n + length(near))
root <- sqrt(p)
chance <- as.vector(p %*% channel)
inverse <- ifelse(chance > 0, 1 / chance, 0)
scaled <- channel * root * rep(sqrt(inverse), each = length(p))
told <- eigen(scaled %*% t(scaled), symmetric = TRUE)
s <- pmin(pmax(told$values, 0), 1 - 1e-8)
both <- told$vectors %*% (n * s / (1 - s) * t(told$vectors)) + diag(p / variance, length(p))
whole <- eigen(both, symmetric = TRUE)

estimate <- function(w) {
  best <- NULL
  for (tau in c(1e-9, 0.1, 1, 10, 100)) {
    lambda <- root * (whole$vectors %*% ((t(whole$vectors) %*% (root * w)) / (pmax(whole$values, 0) + tau)))
    lifted <- root * (told$vectors %*% ((t(told$vectors) %*% (lambda / root)) / (1 - s)))
    g <- as.vector(inverse * (n * (t(channel) %*% lifted)))
    f <- as.vector(lambda / variance)
    d <- as.vector(-tau * lambda / p)
    smooth <- (n * p + 1 / length(p)) / (n + 1)
    of_rows <- sum(smooth * pmax(as.vector(channel %*% g^2) - as.vector(channel %*% g)^2, 0)) / n
    observed <- (sum(seen * g^2) - sum(p * (w + d - f)^2)) / n
    error <- sqrt(max(of_rows, observed) + sum(variance * f^2))
    half <- qnorm(0.975) * error + (max(d) - min(d)) / 2
    if (is.null(best) || half < 0.98 * best["half"]) {
      share <- sum(seen * g) + sum(counted * f) - (max(d) + min(d)) / 2
      best <- c(share = share, error = error, half = half)
    }
  }
  best
}

found <- data.frame()
for (j in seq_along(protocol$publish)) {
  labels <- unlist(protocol$publish[[j]]$labels)
  for (code in sort(unique(values[, j]))) {
    best <- estimate(as.numeric(values[, j] == code))
    found <- rbind(found, data.frame(
      column = protocol$publish[[j]]$column, value = labels[code], share = min(max(best["share"], 0), 1),
      from = max(best["share"] - best["half"], 0), to = min(best["share"] + best["half"], 1)
    ))
  }
}
write.csv(found, row.names = FALSE)
